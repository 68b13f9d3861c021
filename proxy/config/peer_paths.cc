// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/peer_paths.h"

#include <algorithm>
#include <array>

#include "proxy/config/values.h"

namespace longhaul::config {
namespace {

constexpr std::size_t kMostPathNameBytes = 32;  // limit of the wire format
constexpr std::uint64_t kMostCost = 1000;

// Reads an address or interface of this host.
std::string local_end(const Section& section, const std::optional<HostPort>& address) {
  const auto typed = section.text("local", "10.10.100.1");
  if (!typed) return {};
  if (!address)
    section.fail(
        typed->line, "local",
        "has no effect without address: the peer connects to this site, which answers from the address "
        "that the peer uses.");
  const auto own = parse_address(typed->value);
  if (!own) {
    if (!is_interface_name(typed->value))
      section.fail(typed->line, "local",
                   "= \"" + typed->value + "\" is neither an address nor the name of an interface.");
    return typed->value;
  }
  const auto far = parse_address(address->host);
  if (own->is_unspecified() || (far && far->is_v4() != own->is_v4()))
    section.fail(typed->line, "local",
                 "= \"" + typed->value + "\" cannot send to " + address->host +
                     "; it must be an address of this host, of the same IP version.");
  return typed->value;
}

PeerPath read_path(const Section& section, const Peer& peer) {
  PeerPath path;
  path.name = name_value(section, "name", "mpls");
  if (path.name.size() > kMostPathNameBytes)
    section.fail(section.line(), "name", "= \"" + path.name + "\" has more than 32 characters.");
  if (const auto typed = section.text("address", "10.10.100.2:7600"))
    path.address = host_port(section, "address", *typed, HostKind::address_or_name);
  path.local = local_end(section, path.address);
  path.rate_bits = rate(section, "rate");
  path.cost = static_cast<std::uint32_t>(section.integer("cost", 1, kMostCost).value_or(path.cost));
  for (const PeerPath& other : peer.paths) {
    if (other.name == path.name)
      section.fail(section.line(), "name", "= \"" + path.name + "\" is already the name of another path.");
    if (other.address.has_value() != path.address.has_value())
      section.fail(section.line(), "",
                   "\"" + path.name +
                       "\": either all paths of a peer have an address, or none: the site that " +
                       "connects has them, the other one does not.");
    if (path.address && other.address == path.address && other.local == path.local)
      section.fail(section.line(), "",
                   "\"" + path.name + "\" has the same address and local as \"" + other.name +
                       "\": packets would take the same line.");
  }
  return path;
}

}  // namespace

void read_paths(const Section& section, Peer& peer) {
  static constexpr std::array<std::string_view, 5> kKeys{"name", "address", "local", "rate", "cost"};
  const auto policy = section.choice<PathPolicy>(
      "policy", {{"sum", PathPolicy::sum}, {"best", PathPolicy::best}, {"failover", PathPolicy::failover}});
  for (const Section& each : section.tables("path", kKeys)) {
    if (peer.paths.size() == Peer::kMostPaths)
      each.fail(each.line(), "", "is too many: a peer can have at most 8 paths.");
    peer.paths.push_back(read_path(each, peer));
  }
  if (peer.paths.empty()) {
    if (policy)
      section.fail(section.line(), "policy",
                   "has no effect without [[peer.path]], which this peer does not have.");
    return;
  }
  if (policy) peer.policy = *policy;
  for (const std::string_view key : {"address", "rate"})
    if (section.has(key))
      section.fail(section.line(), key,
                   "must be set in each [[peer.path]] instead, because this peer has paths.");
  peer.address = peer.paths.front().address;
}

}  // namespace longhaul::config
