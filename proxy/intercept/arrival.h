// SPDX-License-Identifier: Apache-2.0
// Whether transparent mode would intercept a connection that began now: the decision of nft_rules.h as a
// sentence, from facts about this host. Pure; flows/ decides what happens to an intercepted connection.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proxy/net/interfaces.h"

namespace longhaul::intercept {

struct Arrival {
  bool is_up = false;                            // the rules intercept new flows
  std::string error;                             // why not, if they could not be installed
  std::vector<std::string> interfaces;           // [intercept] interfaces
  std::vector<boost::asio::ip::address> peers;   // the peers' addresses, whose packets are not intercepted
  std::vector<net::Interface> own;               // this host's
  std::string client_interface;                  // through which this host reaches the client; empty if none
};

struct NotTaken {
  std::string sentence, remedy;
};

// Returns nullopt if the connection is intercepted, provided that its packets enter this host by the
// interface that leads to the client.
std::optional<NotTaken> why_not_taken(const Arrival& arrival, const boost::asio::ip::address& client,
                                      const std::optional<boost::asio::ip::address>& server);

}  // namespace longhaul::intercept
