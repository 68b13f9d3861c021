// SPDX-License-Identifier: Apache-2.0
#include "proxy/net/interfaces.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <boost/asio/ip/udp.hpp>
#include <cstring>

namespace longhaul::net {

namespace ip = boost::asio::ip;

namespace {

std::optional<ip::address> address_in(const sockaddr* socket_address) {
  if (socket_address == nullptr) return std::nullopt;
  if (socket_address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, socket_address, sizeof v4);
    return ip::address_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (socket_address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, socket_address, sizeof v6);
    ip::address_v6::bytes_type bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return ip::address_v6(bytes);  // without the scope: only the bits count
  }
  return std::nullopt;
}

unsigned prefix_length(const ip::address& mask) {
  unsigned ones = 0;
  if (mask.is_v4()) {
    for (const std::uint8_t byte : mask.to_v4().to_bytes()) ones += std::popcount(byte);
  } else {
    for (const std::uint8_t byte : mask.to_v6().to_bytes()) ones += std::popcount(byte);
  }
  return ones;
}

}  // namespace

std::vector<Interface> interfaces() {
  std::vector<Interface> all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return all;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    auto at = std::find_if(all.begin(), all.end(),
                           [&](const Interface& each) { return each.name == entry->ifa_name; });
    if (at == all.end()) at = all.insert(at, {.name = entry->ifa_name});
    const auto address = address_in(entry->ifa_addr);
    if (!address) continue;
    at->addresses.push_back(*address);
    if (const auto mask = address_in(entry->ifa_netmask); mask && mask->is_v4() == address->is_v4())
      at->networks.push_back(config::network_of(*address, prefix_length(*mask)));
  }
  freeifaddrs(list);
  return all;
}

std::optional<ip::address> source_towards(const ip::address& destination) {
  const ip::udp::endpoint to(destination, 9);  // any port
  const int descriptor = ::socket(to.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return std::nullopt;
  ip::udp::endpoint from;
  socklen_t size = static_cast<socklen_t>(from.capacity());
  const bool known = ::connect(descriptor, to.data(), static_cast<socklen_t>(to.size())) == 0 &&
                     ::getsockname(descriptor, from.data(), &size) == 0;
  ::close(descriptor);
  if (!known) return std::nullopt;
  from.resize(size);
  if (from.address().is_v4()) return from.address();
  return ip::address_v6(from.address().to_v6().to_bytes());
}

const Interface* interface_with(const std::vector<Interface>& all, const ip::address& address) {
  for (const Interface& each : all)
    if (std::find(each.addresses.begin(), each.addresses.end(), address) != each.addresses.end())
      return &each;
  return nullptr;
}

}  // namespace longhaul::net
