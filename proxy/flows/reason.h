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
  memory_limit,         // the memory limit is reached: the flow bypasses the link, or uses it without the module
  source_fallback,      // optimised, but the server sees the far proxy's address: the client's got no answer
  module_not_at_peer,   // optimised, but the peer does not have the protocol's module in this version
  smb_signed,           // optimised, but nothing is answered early: requests are signed
  smb_encrypted,        // the same: they are encrypted
  smb_multichannel,     // the same: the session has other connections, which are not all seen here
  smb_session,          // the same: the session was taken up again or has expired
  smb_not_understood,   // the same: something in it is not SMB as this version knows it
  lost_writes,          // outside the link, and read: lost writes must be reported to the client
  smb_client_caches,    // optimised, but writes wait for the server: the client writes back by itself
  smb_other_paths,      // the same: the client may use connections that do not pass here
  smb_hides_errors,     // the same: the client's library would not tell its program of a failed CLOSE
};

struct ReasonText {
  Reason reason;
  std::string_view code;      // what `longhaul flows` prints and metrics use as a label
  std::string_view sentence;  // what happened
  std::string_view remedy;    // what a person can do about it; "none needed" where nothing is wrong
};

inline constexpr std::array kReasonTable{
    ReasonText{Reason::optimised, "optimised", "The flow uses the link with the features shown.",
               "none needed"},
    ReasonText{Reason::transport_off, "transport_off",
               "transport = off is in force here or at the peer, so the flow does not use the link: this proxy "
               "relays it to the server directly or, where fail = closed, refuses it.",
               "run longhaul set transport=auto at both sites, or change the rule that matches the flow"},
    ReasonText{Reason::no_peer_for_network, "no_peer_for_network",
               "The destination is in no peer's `networks` or `names`, so the flow bypasses the link.",
               "add the destination's network or name to the [[peer]] of its site"},
    ReasonText{Reason::link_never_up, "link_never_up",
               "The link to the peer has not come up since this daemon started.",
               "see the log (link_failed) for the cause: check address, port, firewall and fingerprint"},
    ReasonText{Reason::link_down, "link_down", "The link to the peer is down.",
               "check that the peer's daemon runs and is reachable; the link reconnects by itself"},
    ReasonText{Reason::link_silent, "link_silent", "The peer stopped answering over the link.",
               "check the WAN between the sites; new flows use the link again when the peer answers"},
    ReasonText{Reason::peer_refused, "peer_refused", "The far proxy is not allowed to connect to the destination.",
               "add the destination to [link] allow at the far site"},
    ReasonText{Reason::client_not_in_networks, "client_not_in_networks",
               "The far proxy cannot use the client's address towards the server, because that address is not in the "
               "`networks` that the far site has configured for this site.",
               "at the far site, add the client's network to `networks` of this site's [[peer]], or set source = "
               "\"proxy\""},
    ReasonText{Reason::destination_refused, "destination_refused",
               "The server recently refused a connection, so new connections go to it directly for a few seconds.",
               "check that the service runs on the server and that no firewall rejects it"},
    ReasonText{Reason::flow_limit, "flow_limit",
               "This daemon has reached its limit of flows; new ones bypass it.",
               "raise [limits] flows"},
    ReasonText{Reason::source_limit, "source_limit",
               "The client's address has reached its limit of flows; its new ones bypass this proxy.",
               "see what the client does with longhaul flows; if that is legitimate, raise [limits] flows_per_source"},
    ReasonText{Reason::memory_limit, "memory_limit",
               "The memory limit is reached: new flows bypass the link, and flows with an application module "
               "continue without it.",
               "raise [limits] memory, or find receivers that have stopped reading with longhaul flows; new flows "
               "use the link again when memory is free"},
    ReasonText{Reason::source_fallback, "source_fallback",
               "The flow uses the link, but the server sees the far proxy's address, because replies to the client's "
               "address do not return through the far proxy.",
               "route the client's network through the far proxy, or set source = \"proxy\" to accept this"},
    ReasonText{Reason::module_not_at_peer, "module_not_at_peer",
               "The flow uses the link, but the peer does not have the same version of this protocol's module, so "
               "round trips are not saved.",
               "run the same version of longhaul at both sites"},
    ReasonText{Reason::smb_signed, "smb_signed",
               "The flow is deduplicated and compressed, but its SMB requests are signed and this proxy has no "
               "key, so round trips are not saved.",
               "if your policy allows it, stop requiring SMB signing at the client or the server"},
    ReasonText{Reason::smb_encrypted, "smb_encrypted",
               "The flow uses the link, but its SMB requests are encrypted and this proxy has no key, so neither "
               "round trips nor bytes are saved.",
               "if your policy allows it, turn SMB encryption off for the share or the server: the link between "
               "the sites is encrypted"},
    ReasonText{Reason::smb_multichannel, "smb_multichannel",
               "The flow is deduplicated and compressed, but its SMB session uses several connections "
               "(multichannel), so round trips are not saved.",
               "turn SMB multichannel off at the client or the server"},
    ReasonText{Reason::smb_session, "smb_session",
               "The flow is deduplicated and compressed, but its SMB session was resumed or has expired, so round "
               "trips are not saved.",
               "none needed; the client's next connection is fully optimised again"},
    ReasonText{Reason::smb_not_understood, "smb_not_understood",
               "The flow is deduplicated and compressed, but contains something that this version does not "
               "recognise as SMB, so round trips are no longer saved.",
               "none needed; if it is SMB, please report the client and server software"},
    ReasonText{Reason::lost_writes, "lost_writes",
               "Writes of this client that were acknowledged early have been lost. The flow does not use the link, but "
               "this proxy reads its requests and answers the next open of each such file with an error, once.",
               "see the log (promise_lost) for the files, and write them again; longhaul status says why the link "
               "is not used"},
    ReasonText{Reason::smb_client_caches, "smb_client_caches",
               "The flow is optimised, but its client caches files (it requests oplocks or leases) and does not "
               "report late errors to programs, so its writes wait for the server.",
               "none needed; to trade safety of writes in a failure for speed, set smb.write_behind_cached = true "
               "at both sites"},
    ReasonText{Reason::smb_other_paths, "smb_other_paths",
               "The flow is optimised, but its client and server support SMB multichannel and the server has other "
               "addresses, over which the client could bypass this proxy, so its writes wait for the server.",
               "turn SMB multichannel off at the client or the server, or give the server one address"},
    ReasonText{Reason::smb_hides_errors, "smb_hides_errors",
               "The flow is optimised, but its client's library (jcifs) does not tell its program when closing a "
               "file fails, so its writes wait for the server.",
               "none needed"},
};

static_assert(
    [] {
      for (std::size_t row = 0; row < kReasonTable.size(); ++row)
        if (static_cast<std::size_t>(kReasonTable[row].reason) != row) return false;
      return true;
    }(),
    "the rows of kReasonTable must be in the order of the enumerators");

constexpr const ReasonText& explain(Reason reason) { return kReasonTable[static_cast<std::size_t>(reason)]; }

constexpr std::optional<Reason> reason_of(std::string_view code) {
  const auto row = std::ranges::find(kReasonTable, code, &ReasonText::code);
  if (row == kReasonTable.end()) return std::nullopt;
  return row->reason;
}

// The table as docs/troubleshooting.md shows it between its markers `<!-- reasons -->` and `<!-- /reasons -->`.
std::string reason_table_markdown();

}  // namespace longhaul::flows
