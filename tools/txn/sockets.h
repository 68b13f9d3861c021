// SPDX-License-Identifier: Apache-2.0
// The sockets of the measured traffic, called as a plain program calls them: blocking, or non-blocking with
// poll(2). Either way a call looks every tenth of a second whether it is to stop, and gives up when nothing
// moves for too long.
#pragma once
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>

#include "codecs/bytes.h"
#include "tools/measuring/door.h"
#include "tools/txn/windows.h"
#include "tools/txn/workload.h"

namespace longhaul::txn {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  std::uint16_t port() const;
  std::string text() const;
};
SocketAddress socket_address(const boost::asio::ip::address& address, std::uint16_t port);

// Throws Trouble where the kernel refuses, Stopped when it is told to.
class Socket {
 public:
  Socket(const Workload& workload, int family, const std::atomic<bool>& stop);
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;

  // At `address`, or where that is not one of this host (it was translated on the way) at any.
  void bind(const boost::asio::ip::address& address, std::uint16_t port);
  void listen();
  SocketAddress local() const;
  // For a listening socket: accepts connections with the pass.
  measuring::Door door(const measuring::Pass& pass) const { return {descriptor_, pass}; }
  Socket accept(measuring::Door& door);
  void connect(const SocketAddress& to);

  // One call for all of `bytes`, more only where the kernel took a part.
  void send(Bytes bytes);
  std::size_t receive(MutableBytes into);  // 0: the other side has ended

  void send_datagram(Bytes bytes, const SocketAddress* to);  // null: connected
  // Nothing when `until` comes first; one that the host says cannot be delivered is as lost as any other.
  std::optional<std::size_t> receive_datagram(MutableBytes into, SocketAddress* from,
                                              std::optional<TimePoint> until);
  void close();

 private:
  Socket(const Socket& listener, wan::Descriptor accepted);
  void set_non_blocking();
  void set(int level, int name, int value, const char* what);
  void limit_window(int bytes);
  void keep_window();
  void call_in_slices(Duration slice);
  // Before a call that would block is made again. `since` is when something last moved.
  void wait(short events, TimePoint since);

  Calls calls_;
  Duration patience_;
  const std::atomic<bool>& stop_;
  Duration slice_{};
  int window_ = 0;  // 0: the kernel's
  int descriptor_ = -1;
};

}  // namespace longhaul::txn
