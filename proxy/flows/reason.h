// SPDX-License-Identifier: Apache-2.0
// Why a flow uses the link or bypasses it: the reasons of this folder. A flow's record may also hold a reason
// from its module's descriptor. docs/troubleshooting.md lists them all; a test keeps that list equal.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/modules/reason.h"

namespace longhaul::flows {

using modules::Reason;
using modules::ReasonText;

namespace reasons {

using modules::reasons::memory_limit;
using modules::reasons::optimised;

inline constexpr ReasonText transport_off{
    "transport_off",
    "transport = off is in force here or at the peer, so the flow does not use the link: this proxy relays "
    "it to "
    "the server directly or, where fail = closed, refuses it.",
    "run longhaul set transport=auto at both sites, or change the rule that matches the flow"};
inline constexpr ReasonText no_peer_for_network{
    "no_peer_for_network",
    "The destination is in no peer's `networks` or `names`, so the flow bypasses the link.",
    "add the destination's network or name to the [[peer]] of its site"};
inline constexpr ReasonText link_never_up{
    "link_never_up", "The link to the peer has not come up since this daemon started.",
    "see the log (link_failed) for the cause: check address, port, firewall and fingerprint"};
inline constexpr ReasonText link_down{
    "link_down", "The link to the peer is down.",
    "check that the peer's daemon runs and is reachable; the link reconnects by itself"};
inline constexpr ReasonText link_silent{
    "link_silent", "The peer stopped answering over the link.",
    "check the WAN between the sites; new flows use the link again when the peer answers"};
inline constexpr ReasonText peer_refused{"peer_refused",
                                         "The far proxy is not allowed to connect to the destination.",
                                         "add the destination to [link] allow at the far site"};
inline constexpr ReasonText client_not_in_networks{
    "client_not_in_networks",
    "The far proxy cannot use the client's address towards the server, because that address is not in the "
    "`networks` that the far site has configured for this site.",
    "at the far site, add the client's network to `networks` of this site's [[peer]], or set source = "
    "\"proxy\""};
inline constexpr ReasonText destination_refused{
    "destination_refused",
    "The server recently refused a connection, so new connections go to it directly for a few seconds.",
    "check that the service runs on the server and that no firewall rejects it"};
inline constexpr ReasonText flow_limit{
    "flow_limit", "This daemon has reached its limit of flows; new ones bypass it.", "raise [limits] flows"};
inline constexpr ReasonText source_limit{
    "source_limit", "The client's address has reached its limit of flows; its new ones bypass this proxy.",
    "list the client's flows with longhaul flows; if they are legitimate, raise [limits] flows_per_source"};
inline constexpr ReasonText source_fallback{
    "source_fallback",
    "The flow uses the link, but the server sees the far proxy's address, because replies to the client's "
    "address do not return through the far proxy.",
    "route the client's network through the far proxy, or set source = \"proxy\" to accept this"};
inline constexpr ReasonText module_not_at_peer{
    "module_not_at_peer",
    "The flow uses the link, but the peer does not have the same version of this protocol's module, so round "
    "trips are not saved.",
    "run the same version of longhaul at both sites"};

// Only reported by `why`: no flow that reaches this proxy has this reason.
inline constexpr ReasonText not_intercepted{
    "not_intercepted",
    "The connection would not reach this proxy: interception is down, or the client's or the server's address is one "
    "that it does not intercept.",
    "longhaul why CLIENT-SERVER:PORT names the cause"};

// In the order of the documentation.
inline constexpr std::array kOwn{
    &optimised,    &transport_off, &no_peer_for_network,    &link_never_up,       &link_down,
    &link_silent,  &peer_refused,  &client_not_in_networks, &destination_refused, &flow_limit,
    &source_limit, &memory_limit,  &source_fallback,        &module_not_at_peer};

}  // namespace reasons

// All reasons that flows can have: the general ones, then each module's.
std::vector<Reason> all_reasons();  // that flows are given
std::optional<Reason> reason_of(std::string_view code);

using CountByReason = std::map<Reason, std::uint64_t>;  // without reasons that were never given
inline std::uint64_t count(const CountByReason& counts, Reason reason) {
  const auto found = counts.find(reason);
  return found == counts.end() ? 0 : found->second;
}

// The table as docs/troubleshooting.md shows it between its markers `<!-- reasons -->` and `<!-- /reasons
// -->`.
std::string reason_table_markdown();

}  // namespace longhaul::flows
