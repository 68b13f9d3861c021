// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/own_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>

namespace longhaul::flows {

const std::vector<boost::asio::ip::address>& OwnAddresses::at(Clock::time_point now) {
  if (asked_ != Clock::time_point{} && now - asked_ < std::chrono::seconds(1)) return addresses_;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses_;  // out of memory or descriptors: what was known still holds
  asked_ = now;
  addresses_.clear();
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      sockaddr_in v4;
      std::memcpy(&v4, entry->ifa_addr, sizeof v4);
      addresses_.emplace_back(boost::asio::ip::address_v4(ntohl(v4.sin_addr.s_addr)));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 v6;
      std::memcpy(&v6, entry->ifa_addr, sizeof v6);
      boost::asio::ip::address_v6::bytes_type bytes;
      std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
      addresses_.emplace_back(boost::asio::ip::address_v6(bytes));  // without the scope: the bits decide
    }
  }
  freeifaddrs(list);
  return addresses_;
}

}  // namespace longhaul::flows
