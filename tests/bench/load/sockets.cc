// SPDX-License-Identifier: Apache-2.0
// The few socket calls that every load needs. See sockets.h.
#include "sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace bench {

void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

Address parse_address(const std::string& text, std::uint16_t port) {
  Address address;
  auto* four = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address.size = sizeof *four;
  } else if (inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    address.size = sizeof *six;
  } else {
    throw std::runtime_error("'" + text + "' is not an address");
  }
  return address;
}

namespace {

void set(const Descriptor& socket, int level, int name, int value) {
  if (setsockopt(socket.get(), level, name, &value, sizeof value) != 0) fail("setsockopt");
}

}  // namespace

Descriptor listen_on(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) fail("socket");
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  Address any = parse_address("::", port);
  if (bind(socket.get(), any.get(), any.size) != 0) fail("bind");
  if (listen(socket.get(), 4096) != 0) fail("listen");
  return socket;
}

std::uint16_t port_of(const Descriptor& listener) {
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) fail("getsockname");
  return ntohs(address.sin6_port);
}

Descriptor start_connect(const Address& to, const Address* from) {
  Descriptor socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail("socket");
  set_no_delay(socket);
  if (from) {
    set(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (bind(socket.get(), from->get(), from->size) != 0) fail("bind");
  }
  if (connect(socket.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) fail("connect");
  return socket;
}

Descriptor connect_to(const Address& to) {
  Descriptor socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) fail("socket");
  set_no_delay(socket);
  if (connect(socket.get(), to.get(), to.size) != 0) fail("connect");
  return socket;
}

void set_no_delay(const Descriptor& socket) { set(socket, IPPROTO_TCP, TCP_NODELAY, 1); }

void close_by_reset(Descriptor& socket) {
  linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket.close();
}

Descriptor accept_from(const Descriptor& listener) {
  Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) fail("accept");
  return socket;
}

void send_all(const Descriptor& socket, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t sent = send(socket.get(), at, size, 0);
    if (sent < 0) fail("send");
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

bool receive_all(const Descriptor& socket, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    ssize_t got = recv(socket.get(), at, size, 0);
    if (got < 0) fail("recv");
    if (got == 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where it fails, opening will say so
}

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace bench
