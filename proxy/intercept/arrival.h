// SPDX-License-Identifier: Apache-2.0
// Whether transparent mode would take a connection that began now: the judgement of nft_rules.h in words, from
// facts about this host. Pure; what becomes of a connection that is taken is decided in flows/.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proxy/net/interfaces.h"

namespace longhaul::intercept {

struct Arrival {
  bool is_up = false;                            // the rules take new flows
  std::string error;                             // why not, where they could not be installed
  std::vector<std::string> interfaces;           // [intercept] interfaces
  std::vector<boost::asio::ip::address> peers;   // their addresses, of which no packet is taken
  std::vector<net::Interface> own;               // this host's
  std::string client_interface;                  // by which this host reaches the client; empty: by none
};

struct NotTaken {
  std::string sentence, remedy;
};

// Nothing: it is taken, if its packets pass through this host by the interface that leads to the client.
std::optional<NotTaken> why_not_taken(const Arrival& arrival, const boost::asio::ip::address& client,
                                      const std::optional<boost::asio::ip::address>& server);

}  // namespace longhaul::intercept
