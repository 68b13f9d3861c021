// SPDX-License-Identifier: Apache-2.0
// The settings for one flow: the first matching rule, on top of the global features, and the peer of its
// destination. Pure.
#pragma once
#include <cstddef>
#include <optional>

#include "proxy/config/config.h"

namespace longhaul::config {

struct FlowPolicy {
  Features features;
  std::optional<Fail> fail;         // the rule's
  std::optional<std::size_t> rule;  // index in Config::rules of the matching rule
};

// `global`: the features in force now, which `longhaul set` may have changed from Config::features. A
// destination given as a name (the far side resolves it) matches no rule with to_networks.
FlowPolicy policy_for(const Config& config, const Features& global, const boost::asio::ip::address& client,
                      const std::optional<boost::asio::ip::address>& destination, std::uint16_t port);

bool matches(const Rule& rule, const boost::asio::ip::address& client,
             const std::optional<boost::asio::ip::address>& destination, std::uint16_t port);

// The peer whose networks contain the address, with the longest prefix; nullptr if none does.
const Peer* peer_for(const Config& config, const boost::asio::ip::address& address);
// The peer with the longest match among its names; an exact name precedes a domain. If no peer has any name
// and there is only one peer, all names belong to it. nullptr if none matches.
const Peer* peer_for_name(const Config& config, std::string_view host);

// Whether a flow is refused if it cannot use the link. Its rule decides; if the rule does not set `fail`,
// [intercept] fail decides for destinations of a peer. `peer`: the destination's, or nullptr.
bool is_closed(const Config& config, const FlowPolicy& policy, const Peer* peer);
// Whether the destination belongs to a peer with fail = closed: if this site connected to it for another
// site, the bytes would leave this site again without a link. An entry of [link] allow with a longer prefix
// than the peer's network makes it local.
bool leaves_again(const Config& config, const boost::asio::ip::address& client,
                  const boost::asio::ip::address& destination, std::uint16_t port);

}  // namespace longhaul::config
