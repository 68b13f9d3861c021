// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/peer_conflicts.h"

#include <algorithm>

namespace longhaul::config {

void refuse_conflict(const Section& section, const std::vector<Text>& keys, const Peer& other,
                     const Peer& peer) {
  if (other.name == peer.name)
    section.fail(section.line(), "name", "= \"" + peer.name + "\" is already the name of another peer.");
  for (const Text& key : keys)
    if (other.has_key(key.value))
      section.fail(key.line, "fingerprint",
                   "is already used for the peer \"" + other.name + "\"; each site needs its own key.");
  const std::vector<HostPort> theirs = other.addresses();
  for (const HostPort& address : peer.addresses())
    if (std::find(theirs.begin(), theirs.end(), address) != theirs.end())
      section.fail(
          section.line(), "address",
          "= \"" + to_text(address) + "\" is already the address of the peer \"" + other.name + "\".");
  for (const Network& network : peer.networks)
    if (std::find(other.networks.begin(), other.networks.end(), network) != other.networks.end())
      section.fail(section.line(), "networks",
                   "has " + to_text(network) + ", which the peer \"" + other.name +
                       "\" already has; of overlapping networks the longest prefix applies, but two equal "
                       "ones are ambiguous.");
  for (const NamePattern& pattern : peer.names)
    if (std::find(other.names.begin(), other.names.end(), pattern) != other.names.end())
      section.fail(section.line(), "names",
                   "has \"" + pattern.to_text() + "\", which the peer \"" + other.name +
                       "\" already has; of overlapping names the longest applies, but two equal ones are "
                       "ambiguous.");
}

}  // namespace longhaul::config
