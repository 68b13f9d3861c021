// SPDX-License-Identifier: Apache-2.0
// What applies to one flow: the first matching rule, on top of the global features, and the peer of its
// destination. Pure.
#pragma once
#include <cstddef>
#include <optional>

#include "proxy/config/config.h"

namespace longhaul::config {

struct FlowPolicy {
  Features features;
  std::optional<Fail> fail;         // the rule's
  std::optional<std::size_t> rule;  // index in Config::rules of the one that matched
};

// `global` is what is in force now, which `longhaul set` may have moved away from Config::features. A
// destination that is a name (the far side resolves it) matches no rule with to_networks.
FlowPolicy policy_for(const Config& config, const Features& global, const boost::asio::ip::address& client,
                      const std::optional<boost::asio::ip::address>& destination, std::uint16_t port);

bool matches(const Rule& rule, const boost::asio::ip::address& client,
             const std::optional<boost::asio::ip::address>& destination, std::uint16_t port);

// The peer whose networks hold the address; of several the one with the longest prefix. None: nullptr.
const Peer* peer_for(const Config& config, const boost::asio::ip::address& address);
// The peer whose names match; of several the longest, and a name itself before those below it. Where no peer
// claims any name, all names belong to the only peer there is. None: nullptr.
const Peer* peer_for_name(const Config& config, std::string_view host);

// Whether a flow is refused when it cannot use the link. What its rule says counts; where it says nothing,
// [intercept] fail counts for destinations of a peer. `peer`: that of the destination; nullptr: none.
bool is_closed(const Config& config, const FlowPolicy& policy, const Peer* peer);
// A closed destination that lies behind a peer: dialled for another site, its bytes would leave this site again,
// without a link. An entry of [link] allow that is longer than the peer's network says that it is here.
bool leaves_again(const Config& config, const boost::asio::ip::address& client,
                  const boost::asio::ip::address& destination, std::uint16_t port);

}  // namespace longhaul::config
