// SPDX-License-Identifier: Apache-2.0
// Counts the flows of each client of this site and finds the clients at their limit. Pure; flows.h and the
// packet rules act on it.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <map>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul::flows {

// The clients whose new flows should bypass this proxy.
struct Crowded {
  bool everyone = false;                 // there are as many flows as [limits] flows
  std::vector<config::Network> sources;  // addresses and IPv6 /64 networks at their limit
  bool operator==(const Crowded&) const = default;
};

// A source is an address, and also the /64 of an IPv6 address. The /64 may have twice as many flows: a host
// can use any address in it, but shares it with other hosts.
class SourceLimits {
 public:
  explicit SourceLimits(const config::Limits& limits) : limits_(limits) {}
  // After a change of the limits: the counts stay.
  void limits_changed();

  // Counts one flow more or less. Returns true if `crowded()` has changed.
  bool add(const boost::asio::ip::address& client);
  bool remove(const boost::asio::ip::address& client);

  // Whether the client has `times` its permitted number of flows, by its address or its /64.
  bool at_limit(const boost::asio::ip::address& client, std::uint32_t times = 1) const;
  // A source stays in this list until it is an eighth below the limit, so that the rules rarely change.
  std::vector<config::Network> crowded() const;

 private:
  struct Less {
    bool operator()(const config::Network& a, const config::Network& b) const {
      return a.prefix_length != b.prefix_length ? a.prefix_length < b.prefix_length : a.address < b.address;
    }
  };
  struct Source {
    std::uint32_t flows = 0;
    bool crowded = false;
  };
  // The sources that a client is part of, each with its limit.
  template <class Visit>
  bool any_source(const boost::asio::ip::address& client, Visit visit) const;
  bool change(const config::Network& source, std::uint32_t limit, std::int32_t by);
  static bool is_crowded(const Source& source, std::uint32_t limit);

  const config::Limits& limits_;
  std::map<config::Network, Source, Less> sources_;
};

}  // namespace longhaul::flows
