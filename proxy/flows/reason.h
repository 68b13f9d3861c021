// SPDX-License-Identifier: Apache-2.0
// Why a flow is, or is not, optimised: a short code, a sentence and a remedy for each case, in one table.
// docs/troubleshooting.md prints the same table; a test keeps the two equal.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace longhaul::flows {

enum class Reason {
  optimised,            // carried over the link with the features in force
  transport_off,        // features say transport = off (preset B)
  no_peer_for_network,  // no peer's `networks` or `names` holds the destination
  link_never_up,        // the peer has not been reached since start
  link_down,            // the link was there and is gone
  link_silent,          // the path stopped answering; new flows go past at once
  peer_refused,         // the far proxy may not dial that destination
  client_not_in_networks,  // the far proxy shows the client's address to no server
  destination_refused,  // the server (or a router) refused; remembered for a while
  flow_limit,           // more flows than `limits.flows`
  source_limit,         // the client has more than `limits.flows_per_source`
  memory_limit,         // the memory cap leaves no room: past the link, or over it without the module
  source_fallback,      // optimised, but the server sees the far proxy's address: the client's got no answer
  module_not_at_peer,   // optimised, but the peer does not have the protocol's module in this version
  smb_signed,           // optimised, but nothing is answered early: requests are signed
  smb_encrypted,        // the same: they are encrypted
  smb_multichannel,     // the same: the session has other connections, which are not all seen here
  smb_session,          // the same: the session was taken up again or has expired
  smb_not_understood,   // the same: something in it is not SMB as this version knows it
  lost_writes,          // past the link, and read: the client is to be told of lost writes
  smb_client_caches,    // optimised, but writes wait for the server: the client writes back by itself
  smb_other_paths,      // the same: the client may use connections that do not pass here
};

struct ReasonText {
  Reason reason;
  std::string_view code;      // what `longhaul flows` prints and metrics use as a label
  std::string_view sentence;  // what happened
  std::string_view remedy;    // what a person can do about it; "none needed" where nothing is wrong
};

inline constexpr std::array kReasonTable{
    ReasonText{Reason::optimised, "optimised", "The flow crosses the link with the features shown.",
               "none needed"},
    ReasonText{Reason::transport_off, "transport_off",
               "The features in force, here or at the peer, say transport = off, so the flow does not use the "
               "link: this proxy relays it past the link or, where fail = closed, refuses it.",
               "longhaul set transport=auto at both sites, or change the rule that matches the flow"},
    ReasonText{Reason::no_peer_for_network, "no_peer_for_network",
               "No peer's `networks` or `names` holds the destination.",
               "add the destination's network or name to the [[peer]] that stands before it"},
    ReasonText{Reason::link_never_up, "link_never_up",
               "The peer has not been reached since this daemon started.",
               "see the log for the reason of the last attempt: address, port, firewall or fingerprint"},
    ReasonText{Reason::link_down, "link_down", "The link to the peer is down.",
               "check that the peer's daemon runs; the link is dialled again by itself"},
    ReasonText{Reason::link_silent, "link_silent", "The path to the peer stopped answering.",
               "check the WAN between the sites; flows use the link again once it answers"},
    ReasonText{Reason::peer_refused, "peer_refused", "The far proxy is not allowed to dial the destination.",
               "add the destination to [link] allow on the far side"},
    ReasonText{Reason::client_not_in_networks, "client_not_in_networks",
               "The flow's client has an address that the far proxy shows to no server for this site: it does "
               "not lie in the `networks` that the far side has for this site.",
               "add the client's network to `networks` of this site's [[peer]] at the far side, or set source = "
               "\"proxy\""},
    ReasonText{Reason::destination_refused, "destination_refused",
               "The server refused a connection a moment ago, so the next ones go to it directly.",
               "start the service; the entry ends by itself after a few seconds"},
    ReasonText{Reason::flow_limit, "flow_limit",
               "This daemon already carries as many flows as it may; new ones bypass it.",
               "raise [limits] flows"},
    ReasonText{Reason::source_limit, "source_limit",
               "The client's address already has as many flows here as one may have; its new ones bypass this "
               "proxy.",
               "see with longhaul flows what the client does; raise [limits] flows_per_source if that is what "
               "it should do"},
    ReasonText{Reason::memory_limit, "memory_limit",
               "The memory cap leaves no room: new flows are not taken over the link, and flows that a "
               "protocol's module holds go on without it.",
               "raise [limits] memory, or see with longhaul flows whose readers have stopped; new flows are "
               "taken again when there is room"},
    ReasonText{Reason::source_fallback, "source_fallback",
               "The flow crosses the link, but the server sees the far proxy's address, because no answer "
               "to the client's address came back to the proxy.",
               "route the client's network through the far proxy, or set source = \"proxy\""},
    ReasonText{Reason::module_not_at_peer, "module_not_at_peer",
               "The flow crosses the link, but the peer does not have this protocol's module in the same "
               "version, so round trips are not spared.",
               "run the same version of Longhaul at both sites"},
    ReasonText{Reason::smb_signed, "smb_signed",
               "The flow is reduced, but its SMB requests are signed and this proxy has no key, so round "
               "trips are not spared.",
               "where your policy allows it, stop requiring signatures at the client or the server"},
    ReasonText{Reason::smb_encrypted, "smb_encrypted",
               "The flow crosses the link, but its SMB requests are encrypted and this proxy has no key, "
               "so neither round trips nor bytes are spared.",
               "where your policy allows it, turn encryption off for the share or the server: the link "
               "between the sites is encrypted anyway"},
    ReasonText{Reason::smb_multichannel, "smb_multichannel",
               "The flow is reduced, but its SMB session has several connections, so round trips are not "
               "spared.",
               "turn SMB multichannel off at the client or the server"},
    ReasonText{Reason::smb_session, "smb_session",
               "The flow is reduced, but its SMB session was resumed or has expired, so round trips are not "
               "spared.",
               "none needed; the client's next connection is optimised again"},
    ReasonText{Reason::smb_not_understood, "smb_not_understood",
               "The flow is reduced, but something in it is not SMB as this version knows it, so the rest "
               "passed unchanged.",
               "none needed; if it is SMB, tell us which client and server it was"},
    ReasonText{Reason::lost_writes, "lost_writes",
               "The flow does not use the link, and this proxy reads its requests: writes of this client that "
               "were acknowledged early have been lost, and the next open of each such file is answered with an "
               "error, once.",
               "see the log for the files, and have them written again; longhaul status says why the link is "
               "not used"},
    ReasonText{Reason::smb_client_caches, "smb_client_caches",
               "The flow is optimised, but its client caches files itself (it asks for oplocks or leases) and "
               "does not tell programs of errors that come late, so its writes wait for the server.",
               "none needed; if speed matters more than writes lost in a failure, set smb.write_behind_cached = "
               "true at both sites"},
    ReasonText{Reason::smb_other_paths, "smb_other_paths",
               "The flow is optimised, but its client and server support SMB multichannel and the server has "
               "other addresses, over which the client could bypass this proxy, so its writes wait for the "
               "server.",
               "turn SMB multichannel off at the client or the server, or give the server one address"},
};

static_assert(
    [] {
      for (std::size_t row = 0; row < kReasonTable.size(); ++row)
        if (static_cast<std::size_t>(kReasonTable[row].reason) != row) return false;
      return true;
    }(),
    "the rows of kReasonTable stand in the order of the enumerators");

constexpr const ReasonText& explain(Reason reason) { return kReasonTable[static_cast<std::size_t>(reason)]; }

constexpr std::optional<Reason> reason_of(std::string_view code) {
  const auto row = std::ranges::find(kReasonTable, code, &ReasonText::code);
  if (row == kReasonTable.end()) return std::nullopt;
  return row->reason;
}

// The table as docs/troubleshooting.md shows it between its markers `<!-- reasons -->` and `<!-- /reasons -->`.
std::string reason_table_markdown();

}  // namespace longhaul::flows
