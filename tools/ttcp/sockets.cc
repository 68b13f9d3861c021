// SPDX-License-Identifier: Apache-2.0
// See sockets.h.
#include "tools/ttcp/sockets.h"

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <cstring>
#include <memory>

namespace longhaul::ttcp {

using wan::Descriptor;
using wan::must;

namespace {

const sockaddr_in& v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

Descriptor new_socket(int family, int type) {
  return Descriptor{must(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket")};
}

void set(int socket, int level, int option, int value, const char* what) {
  must(::setsockopt(socket, level, option, &value, sizeof value), what);
}

void apply(int socket, const SocketOptions& options, Protocol protocol) {
  if (options.buffer_bytes > 0) {
    set(socket, SOL_SOCKET, SO_SNDBUF, static_cast<int>(options.buffer_bytes), "SO_SNDBUF");
    set(socket, SOL_SOCKET, SO_RCVBUF, static_cast<int>(options.buffer_bytes), "SO_RCVBUF");
  }
  if (options.debug) set(socket, SOL_SOCKET, SO_DEBUG, 1, "SO_DEBUG (-d) needs CAP_NET_ADMIN");
  if (options.give_up > Duration{} && protocol == Protocol::tcp)
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
        static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(options.give_up).count()),
        "TCP_USER_TIMEOUT");
  if (options.no_delay && protocol == Protocol::tcp) set(socket, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
}

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail_to_bind(const Address& address, Protocol protocol) {
  const std::string where = std::string(protocol == Protocol::tcp ? "TCP" : "UDP") + " port " +
                            std::to_string(address.port()) + " of " + address.host();
  if (errno == EADDRINUSE)
    throw measuring::Trouble(where + " is in use by another program; choose another port");
  if (errno == EACCES) throw measuring::Trouble(where + " needs root: ports below 1024 are privileged");
  if (errno == EADDRNOTAVAIL) throw measuring::Trouble(address.host() + " is not an address of this host");
  throw measuring::Trouble("cannot listen on " + where + ": " + reason(errno));
}

Descriptor bound(const Address& address, const SocketOptions& options, Protocol protocol) {
  Descriptor socket = new_socket(address.family(), protocol == Protocol::tcp ? SOCK_STREAM : SOCK_DGRAM);
  if (protocol == Protocol::tcp) set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
  if (address.family() == AF_INET6) set(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0, "IPV6_V6ONLY");
  apply(socket.get(), options, protocol);
  if (::bind(socket.get(), address.get(), address.length()) != 0) fail_to_bind(address, protocol);
  return socket;
}

std::string why_not_connected(const Address& address, int error) {
  if (error == ECONNREFUSED) return "nothing listens at " + address.to_string() + " (connection refused)";
  if (error == ETIMEDOUT || error == 0) return "no answer from " + address.to_string();
  return "cannot reach " + address.to_string() + ": " + reason(error);
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t length) : length_(length) {
  std::memcpy(&storage_, address, length);
}

Address Address::local_of(int socket) {
  Address address;
  address.length_ = sizeof address.storage_;
  must(::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.length_),
       "getsockname");
  return address;
}

Address Address::peer_of(int socket) {
  Address address;
  address.length_ = sizeof address.storage_;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.length_) != 0)
    throw PeerGone("the other side closed the connection");
  return address;
}

bool Address::is_ipv6() const {
  return family() == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6(storage_).sin6_addr);
}

std::uint16_t Address::port() const {
  return ntohs(family() == AF_INET6 ? v6(storage_).sin6_port : v4(storage_).sin_port);
}

Address Address::with_port(std::uint16_t port) const {
  Address other = *this;
  if (family() == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(other.storage_).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(other.storage_).sin_port = htons(port);
  return other;
}

std::string Address::host() const {
  std::array<char, NI_MAXHOST> name{};
  if (::getnameinfo(get(), length_, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  const std::string text = name.data();
  constexpr std::string_view kMapped = "::ffff:";
  return text.starts_with(kMapped) && text.find('.') != std::string::npos ? text.substr(kMapped.size())
                                                                          : text;
}

std::string Address::to_string() const { return host() + " port " + std::to_string(port()); }

std::vector<Address> resolve(const std::string& host, std::uint16_t port, Protocol protocol, Family family) {
  addrinfo hints{};
  hints.ai_family = family == Family::ipv4 ? AF_INET : family == Family::ipv6 ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = protocol == Protocol::tcp ? SOCK_STREAM : SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) throw measuring::Trouble("cannot find the host \"" + host + "\": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
  std::vector<Address> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
    addresses.emplace_back(each->ai_addr, each->ai_addrlen);
  return addresses;
}

Descriptor connect_tcp(const std::vector<Address>& addresses, const SocketOptions& options, Duration patience,
                       const Stop& stop) {
  std::string why = "the name has no address";
  for (const Address& address : addresses) {
    Descriptor socket = new_socket(address.family(), SOCK_STREAM);
    apply(socket.get(), options, Protocol::tcp);
    int error = ::connect(socket.get(), address.get(), address.length()) == 0 ? 0 : errno;
    if (error == 0) return socket;
    if (error == EINPROGRESS) {
      if (wait_writable(socket.get(), std::chrono::steady_clock::now() + patience, stop)) {
        socklen_t length = sizeof error;
        must(::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length), "SO_ERROR");
        if (error == 0) return socket;
      } else {
        error = ETIMEDOUT;
      }
    }
    why = why_not_connected(address, error);
  }
  throw measuring::Trouble(why);
}

Descriptor connect_udp(const Address& address, const SocketOptions& options) {
  Descriptor socket = new_socket(address.family(), SOCK_DGRAM);
  apply(socket.get(), options, Protocol::udp);
  if (::connect(socket.get(), address.get(), address.length()) != 0)
    throw measuring::Trouble(why_not_connected(address, errno));
  return socket;
}

Descriptor listen_tcp(const Address& address, const SocketOptions& options) {
  Descriptor socket = bound(address, options, Protocol::tcp);
  if (::listen(socket.get(), 64) != 0) fail_to_bind(address, Protocol::tcp);
  return socket;
}

Descriptor bind_udp(const Address& address, const SocketOptions& options) {
  return bound(address, options, Protocol::udp);
}

Address listening_address(const std::string& host, std::uint16_t port, Protocol protocol, Family family) {
  if (!host.empty()) return resolve(host, port, protocol, family).front();
  if (family == Family::ipv4) return resolve("0.0.0.0", port, protocol, family).front();
  // A host without IPv6 has no such sockets.
  const Descriptor probe{::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (family == Family::any && !probe) return resolve("0.0.0.0", port, protocol, Family::ipv4).front();
  return resolve("::", port, protocol, Family::ipv6).front();
}

Descriptor accept_one(int listener, std::optional<TimePoint> deadline, const Stop& stop) {
  while (wait_readable(listener, deadline, stop)) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) return Descriptor{socket};
    // It was reset before it was taken, or others hold all descriptors for a moment: the listener is sound.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      sleep_until(std::chrono::steady_clock::now() + std::chrono::milliseconds{50}, stop);
    else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && errno != EPROTO)
      must(-1, "accept");
  }
  return {};
}

std::uint32_t path_mtu_of(int connected_socket) {
  int mtu = 0;
  socklen_t length = sizeof mtu;
  const bool v6_socket = Address::local_of(connected_socket).is_ipv6();
  const int error = v6_socket ? ::getsockopt(connected_socket, IPPROTO_IPV6, IPV6_MTU, &mtu, &length)
                              : ::getsockopt(connected_socket, IPPROTO_IP, IP_MTU, &mtu, &length);
  return error == 0 && mtu > 0 ? static_cast<std::uint32_t>(mtu) : 0;
}

std::uint64_t drops_of(int socket) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info.data(), &length) != 0) return 0;
  return info[SK_MEMINFO_DROPS];
}

}  // namespace longhaul::ttcp
