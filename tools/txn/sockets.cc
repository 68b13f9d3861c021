// SPDX-License-Identifier: Apache-2.0
// System calls, and sentences for what they say.
#include "tools/txn/sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>

#include "tools/measuring/trouble.h"
#include "tools/txn/job.h"

namespace longhaul::txn {
namespace {

using measuring::Trouble;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Duration kSlice = 100ms;
constexpr int kUdpBuffers = 4 << 20;  // bytes, as far as the host allows: a window must not be lost at home

[[noreturn]] void fail(const std::string& what, int error = errno) {
  if (error == EADDRNOTAVAIL)
    throw Trouble(what + ": no free local port; closed connections keep their ports for a minute");
  if (error == EMFILE || error == ENFILE) throw Trouble(what + ": too many open files on this host");
  throw Trouble(what + ": " + std::strerror(error));
}

bool would_wait(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

std::uint16_t SocketAddress::port() const {
  // At the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

std::string SocketAddress::text() const {
  boost::asio::ip::tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), &storage, std::min<std::size_t>(size, endpoint.capacity()));
  const auto address = endpoint.address();
  return (address.is_v6() ? "[" + address.to_string() + "]" : address.to_string()) + ":" +
         std::to_string(port());
}

SocketAddress socket_address(const boost::asio::ip::address& address, std::uint16_t port) {
  const boost::asio::ip::tcp::endpoint endpoint{address, port};
  SocketAddress made;
  made.size = static_cast<socklen_t>(endpoint.size());
  std::memcpy(&made.storage, endpoint.data(), endpoint.size());
  return made;
}

Socket::Socket(const Workload& workload, int family, const std::atomic<bool>& stop)
    : calls_(workload.calls), patience_(workload.patience), stop_(stop) {
  const bool tcp = workload.protocol == Protocol::tcp;
  const int type = (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC;
  descriptor_ = ::socket(family, type | (calls_ == Calls::non_blocking ? SOCK_NONBLOCK : 0), 0);
  if (descriptor_ < 0) fail("cannot create a socket");
  try {
    if (calls_ == Calls::blocking) call_in_slices(kSlice);
    if (!tcp) {
      for (const int buffer : {SO_RCVBUF, SO_SNDBUF}) set(SOL_SOCKET, buffer, kUdpBuffers, "a socket buffer");
      return;
    }
    set(SOL_SOCKET, SO_REUSEADDR, 1, "the port's reuse");
    const auto segment = segment_bytes(workload, family == AF_INET ? Family::ipv4 : Family::ipv6);
    if (segment) set(IPPROTO_TCP, TCP_MAXSEG, static_cast<int>(segment), "the MTU");
    if (workload.window_bytes) limit_window(static_cast<int>(workload.window_bytes));
    if (workload.no_delay) set(IPPROTO_TCP, TCP_NODELAY, 1, "no delay");
  } catch (...) {
    close();
    throw;
  }
}

Socket::Socket(const Socket& listener, wan::Descriptor accepted)
    : calls_(listener.calls_),
      patience_(listener.patience_),
      stop_(listener.stop_),
      window_(listener.window_),
      descriptor_(accepted.release()) {
  if (calls_ == Calls::non_blocking)
    set_non_blocking();
  else
    call_in_slices(kSlice);  // the other options are the listener's
}

Socket::Socket(Socket&& other) noexcept
    : calls_(other.calls_),
      patience_(other.patience_),
      stop_(other.stop_),
      slice_(other.slice_),
      window_(other.window_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket::~Socket() { close(); }

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void Socket::set(int level, int name, int value, const char* what) {
  if (::setsockopt(descriptor_, level, name, &value, sizeof value) != 0)
    fail(std::string("the host does not accept ") + what + " of " + std::to_string(value));
}

// The advertised window itself is clamped. A receive buffer that tunes itself would move the clamp with it,
// so it gets a fixed size, with room for the kernel's bookkeeping.
void Socket::limit_window(int bytes) {
  const int wanted = 2 * bytes;  // which the kernel doubles once more
  // Beyond net.core.rmem_max with the privilege; otherwise up to that limit.
  if (::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof wanted) != 0)
    set(SOL_SOCKET, SO_RCVBUF, wanted, "a receive buffer");
  int got = 0;
  socklen_t size = sizeof got;
  if (::getsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &got, &size) != 0)
    fail("cannot read the receive buffer size");
  if (got < 2 * bytes)
    throw Trouble("this host does not allow a window of " + std::to_string(bytes) +
                  " bytes: net.core.rmem_max must be at least " + std::to_string(bytes));
  window_ = bytes;
  keep_window();
}

// Linux since 6.10 resets the clamp, from the buffer, when it has learnt how much memory a segment takes.
void Socket::keep_window() {
  int clamp = 0;
  socklen_t size = sizeof clamp;
  if (::getsockopt(descriptor_, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, &size) != 0 || clamp != window_)
    set(IPPROTO_TCP, TCP_WINDOW_CLAMP, window_, "the window");
}

void Socket::call_in_slices(Duration slice) {
  if (slice == slice_) return;
  slice_ = slice;
  const auto microseconds =
      std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::microseconds>(slice).count());
  const timeval time{microseconds / 1'000'000, microseconds % 1'000'000};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
    if (::setsockopt(descriptor_, SOL_SOCKET, option, &time, sizeof time) != 0) fail("cannot set a time-out");
}

void Socket::wait(short events, TimePoint since) {
  if (stop_) throw Stopped{};
  if (Clock::now() - since > patience_)
    throw Trouble("no data for " +
                  std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience_).count()) +
                  " s; does a firewall block the other agent's port?");
  if (calls_ == Calls::blocking) return;
  pollfd poll{descriptor_, events, 0};
  ::poll(&poll, 1, static_cast<int>(std::chrono::milliseconds(kSlice / 1ms).count()));
}

void Socket::bind(const boost::asio::ip::address& address, std::uint16_t port) {
  SocketAddress at = socket_address(address, port);
  if (::bind(descriptor_, at.raw(), at.size) == 0) return;
  if (errno == EADDRNOTAVAIL) {
    const auto any = address.is_v4() ? boost::asio::ip::address{boost::asio::ip::address_v4::any()}
                                     : boost::asio::ip::address{boost::asio::ip::address_v6::any()};
    at = socket_address(any, port);
    if (::bind(descriptor_, at.raw(), at.size) == 0) return;
  }
  if (errno == EADDRINUSE) throw Trouble("the port of " + at.text() + " is in use by another program");
  fail("cannot bind " + at.text());
}

void Socket::listen() {
  if (::listen(descriptor_, 128) != 0) fail("cannot listen");
  set_non_blocking();  // since strangers are waited for beside it
}

SocketAddress Socket::local() const {
  SocketAddress address;
  if (::getsockname(descriptor_, address.raw(), &address.size) != 0) fail("cannot read the local address");
  return address;
}

void Socket::set_non_blocking() {
  if (::fcntl(descriptor_, F_SETFL, O_NONBLOCK) != 0) fail("cannot make the socket non-blocking");
}

Socket Socket::accept(measuring::Door& door) {
  // The agent that calls may take its time: its own patience ends a run.
  std::vector<pollfd> callers;
  for (;;) {
    if (stop_) throw Stopped{};
    if (auto admitted = door.look(Clock::now())) return Socket{*this, std::move(admitted->socket)};
    callers.clear();
    door.watch(callers);
    ::poll(callers.data(), callers.size(), static_cast<int>(kSlice / 1ms));
  }
}

void Socket::connect(const SocketAddress& to) {
  const TimePoint began = Clock::now();
  if (::connect(descriptor_, to.raw(), to.size) == 0) return;
  while (errno == EINPROGRESS || errno == EALREADY || errno == EINTR) {
    wait(POLLOUT, began);
    if (::connect(descriptor_, to.raw(), to.size) == 0 || errno == EISCONN) return;
  }
  if (errno == ECONNREFUSED) throw Trouble("the connection to " + to.text() + " was refused");
  fail("cannot connect to " + to.text());
}

void Socket::send(Bytes bytes) {
  TimePoint moved = Clock::now();
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      if (bytes.empty()) return;
      moved = Clock::now();
      if (stop_) throw Stopped{};
      continue;
    }
    if (!would_wait(errno)) fail("the connection was lost");
    wait(POLLOUT, moved);
  }
}

std::size_t Socket::receive(MutableBytes into) {
  const TimePoint began = Clock::now();
  for (;;) {
    const ssize_t got = ::recv(descriptor_, into.data(), into.size(), 0);
    if (got >= 0) {
      if (stop_) throw Stopped{};
      if (window_ && got > 0) keep_window();
      return static_cast<std::size_t>(got);
    }
    if (!would_wait(errno)) fail("the connection was lost");
    wait(POLLIN, began);
  }
}

void Socket::send_datagram(Bytes bytes, const SocketAddress* to) {
  const TimePoint began = Clock::now();
  for (;;) {
    const ssize_t sent = ::sendto(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL,
                                  to ? to->raw() : nullptr, to ? to->size : 0);
    if (sent >= 0) return;
    if (errno == ECONNREFUSED || errno == ENOBUFS || errno == EPERM) return;  // lost, as far as this goes
    if (errno == EMSGSIZE)
      throw Trouble("a datagram of " + std::to_string(bytes.size()) +
                    " bytes is too long for this path; set --mtu");
    if (!would_wait(errno)) fail("cannot send a datagram");
    wait(POLLOUT, began);
  }
}

std::optional<std::size_t> Socket::receive_datagram(MutableBytes into, SocketAddress* from,
                                                    std::optional<TimePoint> until) {
  if (stop_) throw Stopped{};
  const TimePoint now = Clock::now();
  Duration longest = kSlice;
  // Rounded up to milliseconds, as the kernel's clocks are: what returns too early would only come again.
  if (until)
    longest = std::clamp<Duration>(std::chrono::ceil<std::chrono::milliseconds>(*until - now), 0ms, kSlice);
  if (calls_ == Calls::blocking) call_in_slices(std::max<Duration>(longest, 1ms));
  SocketAddress ignored;
  SocketAddress& source = from ? *from : ignored;
  for (int attempt = 0; attempt < 2; ++attempt) {
    source.size = sizeof source.storage;
    const ssize_t got = ::recvfrom(descriptor_, into.data(), into.size(), 0, source.raw(), &source.size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == ECONNREFUSED) return std::nullopt;  // told by ICMP; patience decides
    if (!would_wait(errno)) fail("cannot receive a datagram");
    if (calls_ == Calls::blocking || attempt == 1) return std::nullopt;
    pollfd poll{descriptor_, POLLIN, 0};
    ::poll(&poll, 1, static_cast<int>(longest / 1ms));
  }
  return std::nullopt;
}

}  // namespace longhaul::txn
