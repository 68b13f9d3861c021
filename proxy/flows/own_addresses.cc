// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/own_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <bit>
#include <cstring>
#include <optional>

namespace longhaul::flows {

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
    return ip::address_v6(bytes);  // without the scope: the bits decide
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

void OwnAddresses::ask(Clock::time_point now) {
  if (asked_ != Clock::time_point{} && now - asked_ < std::chrono::seconds(1)) return;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;  // out of memory or descriptors: what was known still holds
  asked_ = now;
  addresses_.clear();
  networks_.clear();
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const auto address = address_in(entry->ifa_addr);
    if (!address) continue;
    addresses_.push_back(*address);
    if (const auto mask = address_in(entry->ifa_netmask); mask && mask->is_v4() == address->is_v4())
      networks_.push_back(config::network_of(*address, prefix_length(*mask)));
  }
  freeifaddrs(list);
}

const std::vector<ip::address>& OwnAddresses::at(Clock::time_point now) {
  ask(now);
  return addresses_;
}

const std::vector<config::Network>& OwnAddresses::networks_at(Clock::time_point now) {
  ask(now);
  return networks_;
}

}  // namespace longhaul::flows
