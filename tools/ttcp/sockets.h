// SPDX-License-Identifier: Apache-2.0
// Sockets by name, in both families, with sentences for what goes wrong. Leaves what is sent over them to
// others. All sockets are non-blocking.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/measuring/stop.h"
#include "tools/measuring/trouble.h"

namespace longhaul::ttcp {

using measuring::Duration;
using measuring::Interrupted;
using measuring::sleep_until;
using measuring::Stop;
using measuring::TimePoint;
using measuring::wait;
using measuring::wait_readable;
using measuring::wait_writable;

enum class Protocol { tcp, udp };
enum class Family { any, ipv4, ipv6 };

class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t length);
  static Address local_of(int socket);
  static Address peer_of(int socket);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  bool is_ipv6() const;  // on the wire: an IPv4 address in an IPv6 socket is not
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;
  std::string host() const;       // without "::ffff:" before IPv4
  std::string to_string() const;  // "10.0.0.1 port 5001"

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

struct SocketOptions {
  std::uint32_t buffer_bytes = 0;  // 0: the system's
  bool no_delay = false;
  bool debug = false;
  Duration give_up{};  // TCP: when nothing sent was acknowledged for so long; 0: the system's, many minutes
};

// Each throws Trouble with a sentence that names host and port.
std::vector<Address> resolve(const std::string& host, std::uint16_t port, Protocol protocol, Family family);
wan::Descriptor connect_tcp(const std::vector<Address>& addresses, const SocketOptions& options,
                            Duration patience, const Stop& stop);
wan::Descriptor connect_udp(const Address& address, const SocketOptions& options);
wan::Descriptor listen_tcp(const Address& address, const SocketOptions& options);
wan::Descriptor bind_udp(const Address& address, const SocketOptions& options);
// Every address of this host in one socket where IPv6 is there; else IPv4's. "" or a host to listen on.
Address listening_address(const std::string& host, std::uint16_t port, Protocol protocol, Family family);
// Nothing came until the deadline: an empty one.
wan::Descriptor accept_one(int listener, std::optional<TimePoint> deadline, const Stop& stop);

std::uint32_t path_mtu_of(int connected_socket);
std::uint64_t drops_of(int socket);  // datagrams that found its buffer full

// The other side has closed, reset or refused; the sentence says which.
struct PeerGone : measuring::Trouble {
  using Trouble::Trouble;
};

}  // namespace longhaul::ttcp
