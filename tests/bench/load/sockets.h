// SPDX-License-Identifier: Apache-2.0
// The few socket calls that every load needs, with errors as exceptions: a load that cannot run is no
// measurement. What is sent over the sockets is in the other files.
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bench {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

[[noreturn]] void fail(const std::string& what);  // with what errno says
Address parse_address(const std::string& text, std::uint16_t port);

Descriptor listen_on(std::uint16_t port);  // both families; 0: any port
std::uint16_t port_of(const Descriptor& listener);
Descriptor start_connect(const Address& to, const Address* from);  // does not block
Descriptor connect_to(const Address& to);                          // blocks
void set_no_delay(const Descriptor& socket);
void close_by_reset(Descriptor& socket);  // leaves no TIME_WAIT

// Of sockets that block.
Descriptor accept_from(const Descriptor& listener);
void send_all(const Descriptor& socket, const void* data, std::size_t size);
bool receive_all(const Descriptor& socket, void* data, std::size_t size);  // false: it ended before

void allow_many_descriptors();
std::int64_t now_ns();  // CLOCK_MONOTONIC: the same in every process and namespace of this host

}  // namespace bench
