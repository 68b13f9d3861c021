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

// Flows of a client to a server that are always taken: the client has something to be told (modules::Guard).
struct GuardedFlows {
  boost::asio::ip::address client, server;  // of one family
  std::uint16_t port = 0;
  bool operator==(const GuardedFlows&) const = default;
};

struct RuleSet {
  std::vector<std::string> interfaces;          // on which new flows are taken
  std::uint16_t port = 7650;                    // of the transparent listeners on 127.0.0.1 and ::1
  std::vector<boost::asio::ip::address> peers;  // packets from and to them are never taken
  bool fast_connect = true;                     // false: only destinations that answered lately are taken
  std::uint32_t new_flows_per_source = 1'000;   // taken in a second; twice as many at once
  flows::Crowded crowded;                       // whose new flows are not taken
  // Whatever is limited, refused lately or not seen to answer; on any interface, unless there are closed
  // flows: what comes from elsewhere may be one of those, and the closed door judges it.
  std::vector<GuardedFlows> guarded = {};
  // closed_flows_text with the verdict `goto admit`: flows that may only use the link are taken whatever
  // their destination answered lately. Empty: there are none.
  std::string closed_flows = {};
};

// A destination that refused is left alone for so long, so that the next attempts meet the real answer.
inline constexpr std::chrono::seconds kRefusedFor{10};
inline constexpr std::chrono::minutes kAnsweredFor{60};
// Which way a SYN went is remembered for so long after the last one: a SYN that is sent again goes the same
// way, or client and server would each know of another connection.
inline constexpr std::chrono::seconds kJudgedFor{5};
inline constexpr std::size_t kJudgedEntries = 131'072;  // 21,000 connections a second
inline constexpr std::chrono::seconds kSourceKnownFor{10};
inline constexpr std::size_t kGuardedEntries = 4'096;  // more are not entered
inline constexpr std::size_t kSetEntries = 65'536;     // for each set; some 100 bytes of kernel memory each

// A name the kernel takes for an interface, and that means nothing else in a rule.
bool is_interface_name(std::string_view name);

std::string table_name(const RuleSet& rules);
// The whole table, as nft(8) reads it. Every interface must be an interface name.
std::string table_text(const RuleSet& rules);
// Commands that replace an older table of the same owner, all or nothing.
std::string replace_text(const RuleSet& rules);
// Commands that enter destinations into the set of those that refused.
std::string refuse_text(const RuleSet& rules, std::span<const boost::asio::ip::tcp::endpoint> servers);

// Commands that put `crowded` of the rules in force.
std::string crowded_text(const RuleSet& rules);

// Commands that put `guarded` of the rules in force.
std::string guarded_text(const RuleSet& rules);

// SYNs that were let pass because of a limit, counted by the kernel under these names.
inline constexpr std::array<std::string_view, 4> kBypassCounters{
    "over_rate",     // of a source with more than new_flows_per_source, or of one too many sources
    "source_limit",  // of a source with flows_per_source
    "flow_limit",    // while there are as many flows as may be
    "no_entry",      // more new connections than kJudgedEntries at a time
};

}  // namespace longhaul::intercept
