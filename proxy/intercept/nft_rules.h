// SPDX-License-Identifier: Apache-2.0
// The text of the packet rules of transparent mode. Pure, so that it can be printed and tested without a
// kernel; nft_table.h installs it.
#pragma once
#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flows/source_limits.h"

namespace longhaul::intercept {

// Flows of a client to a server that are always intercepted, because the client must receive a report
// (modules::Guard).
struct GuardedFlows {
  boost::asio::ip::address client, server;  // both of the same family
  std::uint16_t port = 0;
  bool operator==(const GuardedFlows&) const = default;
};

struct RuleSet {
  std::vector<std::string> interfaces;          // new flows are intercepted on these
  std::uint16_t port = 7650;                    // of the transparent listeners on 127.0.0.1 and ::1
  std::vector<boost::asio::ip::address> peers;  // packets from and to them are never intercepted
  bool fast_connect = true;  // false: intercepts only destinations that answered recently
  std::uint32_t new_flows_per_source = 1'000;  // intercepted per second; bursts of twice as many
  flows::Crowded crowded;                      // clients whose new flows are not intercepted
  // Intercepted regardless of limits, recent refusals and missing answers. On any interface, unless there are
  // closed flows: then a packet from another interface may belong to one of those, and the rules of fail =
  // closed decide.
  std::vector<GuardedFlows> guarded = {};
  // closed_flows_text with the verdict `goto admit`: flows that may only use the link are intercepted even if
  // their destination did not answer recently. Empty if there are no closed flows.
  std::string closed_flows = {};
};

// Connections to a destination that refused bypass the proxy for this long, so that they receive the server's
// own response.
inline constexpr std::chrono::seconds kRefusedFor{10};
inline constexpr std::chrono::minutes kAnsweredFor{60};
// How long the path of a SYN is remembered after the last one. A retransmitted SYN must take the same path;
// otherwise client and server would each have a different connection.
inline constexpr std::chrono::seconds kJudgedFor{5};
inline constexpr std::size_t kJudgedEntries = 131'072;  // for 21,000 connections per second
inline constexpr std::chrono::seconds kSourceKnownFor{10};
inline constexpr std::size_t kGuardedEntries = 4'096;  // more are not added
inline constexpr std::size_t kSetEntries = 65'536;     // per set; about 100 bytes of kernel memory each

// Whether the kernel accepts the name for an interface, and it has no other meaning in a rule.
bool is_interface_name(std::string_view name);

std::string table_name(const RuleSet& rules);
// The whole table in the syntax of nft(8). Every interface must be an interface name.
std::string table_text(const RuleSet& rules);
// Commands that atomically replace an older table of the same owner.
std::string replace_text(const RuleSet& rules);
// Commands that add destinations to the set of refusing destinations.
std::string refuse_text(const RuleSet& rules, std::span<const boost::asio::ip::tcp::endpoint> servers);

// Commands that install `crowded` of the rules.
std::string crowded_text(const RuleSet& rules);

// Commands that install `guarded` of the rules.
std::string guarded_text(const RuleSet& rules);
// Commands that reset connections between guarded ends that this daemon does not relay. They began before the
// ends were guarded; the client's next connection is intercepted, and the client is notified on it.
std::string strays_text(const RuleSet& rules);

// Kernel counters of SYNs that bypassed the proxy because of a limit.
inline constexpr std::array<std::string_view, 4> kBypassCounters{
    "over_rate",     // of a source above new_flows_per_source, or above the number of sources
    "source_limit",  // of a source at flows_per_source
    "flow_limit",    // while the daemon has its maximum of flows
    "no_entry",      // more than kJudgedEntries new connections at a time
};

}  // namespace longhaul::intercept
