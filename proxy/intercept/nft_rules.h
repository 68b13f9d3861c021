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

// Flows of a client to a server that are always intercepted, because the client must get a report
// (modules::Guard).
struct GuardedFlows {
  boost::asio::ip::address client, server;  // of one family
  std::uint16_t port = 0;
  bool operator==(const GuardedFlows&) const = default;
};

struct RuleSet {
  std::vector<std::string> interfaces;          // on which new flows are intercepted
  std::uint16_t port = 7650;                    // of the transparent listeners on 127.0.0.1 and ::1
  std::vector<boost::asio::ip::address> peers;  // packets from and to them are never intercepted
  bool fast_connect = true;  // false: only destinations that answered recently are intercepted
  std::uint32_t new_flows_per_source = 1'000;  // intercepted in a second; a burst of twice as many
  flows::Crowded crowded;                      // whose new flows are not intercepted
  // Regardless of limits, recent refusals and missing answers; on any interface, unless there are closed
  // flows: then a packet from elsewhere may belong to one of those, and the closed door decides.
  std::vector<GuardedFlows> guarded = {};
  // closed_flows_text with the verdict `goto admit`: flows that may only use the link are intercepted even if
  // their destination did not answer recently. Empty: there are none.
  std::string closed_flows = {};
};

// A destination that refused bypasses the proxy for this long, so that the next attempts get the real answer.
inline constexpr std::chrono::seconds kRefusedFor{10};
inline constexpr std::chrono::minutes kAnsweredFor{60};
// How long the path of a SYN is remembered after the last one: a repeated SYN takes the same path, otherwise
// client and server would each know of another connection.
inline constexpr std::chrono::seconds kJudgedFor{5};
inline constexpr std::size_t kJudgedEntries = 131'072;  // 21,000 connections a second
inline constexpr std::chrono::seconds kSourceKnownFor{10};
inline constexpr std::size_t kGuardedEntries = 4'096;  // more are not added
inline constexpr std::size_t kSetEntries = 65'536;     // for each set; some 100 bytes of kernel memory each

// A name that the kernel accepts for an interface, and that has no other meaning in a rule.
bool is_interface_name(std::string_view name);

std::string table_name(const RuleSet& rules);
// The whole table in the syntax of nft(8). Every interface must be an interface name.
std::string table_text(const RuleSet& rules);
// Commands that replace an older table of the same owner, all or nothing.
std::string replace_text(const RuleSet& rules);
// Commands that add destinations to the set of those that refused.
std::string refuse_text(const RuleSet& rules, std::span<const boost::asio::ip::tcp::endpoint> servers);

// Commands that install `crowded` of the rules.
std::string crowded_text(const RuleSet& rules);

// Commands that install `guarded` of the rules.
std::string guarded_text(const RuleSet& rules);
// Commands that reset connections between guarded ends that this daemon does not relay. They began before the
// ends were guarded; the client's next connection is intercepted, and the client is notified in it.
std::string strays_text(const RuleSet& rules);

// SYNs that were let pass because of a limit, counted by the kernel under these names.
inline constexpr std::array<std::string_view, 4> kBypassCounters{
    "over_rate",     // of a source with more than new_flows_per_source, or of one too many sources
    "source_limit",  // of a source with flows_per_source
    "flow_limit",    // while the daemon has its maximum of flows
    "no_entry",      // more new connections than kJudgedEntries at a time
};

}  // namespace longhaul::intercept
