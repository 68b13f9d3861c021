// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/nft_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "proxy/config/network.h"
#include "proxy/net/marks.h"

namespace longhaul::intercept {

using boost::asio::ip::address;

namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string destination_set(std::string_view name, std::string_view type, std::chrono::seconds timeout,
                            std::string_view flags) {
  return fmt::format("  set {} {{ type {} . inet_service; flags {}; timeout {}s; size {}; }}\n", name, type,
                     flags, timeout.count(), kSetEntries);
}

struct SetFamily {
  char number;
  std::string_view type;
  std::string_view source;
  std::string_view flow;  // client and server, each with its port
  std::string_view ends;  // client and server, with the server's port
};

constexpr std::array kSetFamilies{
    SetFamily{'4', "ipv4_addr", "ip saddr", "ip saddr . tcp sport . ip daddr . tcp dport",
              "ip saddr . ip daddr . tcp dport"},
    SetFamily{'6', "ipv6_addr", "ip6 saddr", "ip6 saddr . tcp sport . ip6 daddr . tcp dport",
              "ip6 saddr . ip6 daddr . tcp dport"}};

std::string dynamic_set(std::string_view name, const SetFamily& family, std::string_view type,
                        std::chrono::seconds timeout, std::size_t entries) {
  return fmt::format("  set {}{} {{ type {}; flags dynamic, timeout; timeout {}s; size {}; }}\n", name,
                     family.number, type, timeout.count(), entries);
}

std::string again_rule(const SetFamily& family) {
  return fmt::format("    {0} @taken{1} update @taken{1} {{ {0} }} goto take\n", family.flow, family.number);
}

std::string plain_rule(const SetFamily& family) {
  return fmt::format("    {} @plain{} goto plain\n", family.flow, family.number);
}

std::string guarded_rules() {
  std::string text;
  for (const SetFamily& family : kSetFamilies)
    text += fmt::format("    {} @guarded{} goto guarded\n", family.ends, family.number);
  return text;
}

// Few sources reach their limit of flows, and they rarely change, so they are written into the rules
// themselves.
std::vector<std::string> limit_rules(const flows::Crowded& crowded) {
  std::vector<std::string> rules;
  if (crowded.everyone) rules.emplace_back("counter name flow_limit goto plain");
  std::vector<std::string> v4, v6;
  const auto& sources = crowded.sources;
  for (const config::Network& source : sources) {
    const bool covered = std::any_of(sources.begin(), sources.end(), [&](const config::Network& wider) {
      return wider.prefix_length < source.prefix_length && config::contains(wider, source.address);
    });
    // Networks of one set may not overlap.
    if (!covered) (source.address.is_v4() ? v4 : v6).push_back(config::to_text(source));
  }
  constexpr std::string_view kRule = "{} saddr {{ {} }} counter name source_limit goto plain";
  if (!v4.empty()) rules.push_back(fmt::format(kRule, "ip", joined(v4)));
  if (!v6.empty()) rules.push_back(fmt::format(kRule, "ip6", joined(v6)));
  return rules;
}

// Peers are few and change rarely, so they are written into the rule itself.
std::string peer_rules(const RuleSet& rules, bool v4) {
  std::vector<std::string> addresses;
  for (const address& peer : rules.peers) {
    const address plain = config::unmapped(peer);
    if (plain.is_unspecified() || plain.is_v4() != v4) continue;
    addresses.push_back(v4 ? plain.to_string()
                           : address(boost::asio::ip::address_v6(plain.to_v6().to_bytes())).to_string());
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  if (addresses.empty()) return "";
  const std::string list = joined(addresses);
  return fmt::format("    {0} saddr {{ {1} }} accept\n    {0} daddr {{ {1} }} accept\n", v4 ? "ip" : "ip6",
                     list);
}

// The rules that precede all other checks of a SYN.
std::string first_rules(const RuleSet& rules) {
  return "    fib daddr type { local, broadcast, anycast, multicast } accept\n" + peer_rules(rules, true) +
         peer_rules(rules, false) +
         // A retransmitted SYN may match the socket that it created.
         "    socket transparent 1 goto take\n" +
         (rules.closed_flows.empty() ? "" : "    jump closed_flows\n");
}

std::string text_of(const address& plain) {
  return plain.is_v4() ? plain.to_string()
                       : boost::asio::ip::address_v6(plain.to_v6().to_bytes()).to_string();
}

// In the syntax of `add element`.
std::vector<std::string> guarded_elements(const RuleSet& rules, bool v4) {
  std::vector<std::string> elements;
  for (const GuardedFlows& flows : rules.guarded) {
    const address client = config::unmapped(flows.client), server = config::unmapped(flows.server);
    if (client.is_v4() != v4 || server.is_v4() != v4 || elements.size() == kGuardedEntries) continue;
    elements.push_back(fmt::format("{} . {} . {}", text_of(client), text_of(server), flows.port));
  }
  return elements;
}

}  // namespace

bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() < 16 && name != "." && name != ".." &&  // IFNAMSIZ
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return c > ' ' && c < 127 && c != '/' && c != ':' && c != '"' && c != '\\' && c != '*';
         });
}

std::string table_name(const RuleSet& rules) { return "longhaul_" + std::to_string(rules.port); }

std::string table_text(const RuleSet& rules) {
  std::vector<std::string> quoted;
  for (const std::string& name : rules.interfaces) {
    assert(is_interface_name(name));
    quoted.push_back('"' + name + '"');
  }
  std::string text = "table inet " + table_name(rules) + " {\n  flags owner\n";
  text += destination_set("refused4", "ipv4_addr", kRefusedFor, "timeout");
  text += destination_set("refused6", "ipv6_addr", kRefusedFor, "timeout");
  if (!rules.fast_connect) {
    text += destination_set("answered4", "ipv4_addr", kAnsweredFor, "dynamic, timeout");
    text += destination_set("answered6", "ipv6_addr", kAnsweredFor, "dynamic, timeout");
  }
  for (const std::string_view way : {"taken", "plain"})
    for (const SetFamily& family : kSetFamilies)
      text += dynamic_set(way, family, fmt::format("{0} . inet_service . {0} . inet_service", family.type),
                          kJudgedFor, kJudgedEntries);
  for (const SetFamily& family : kSetFamilies)
    text += dynamic_set("sources", family, family.type, kSourceKnownFor, kSetEntries);
  for (const SetFamily& family : kSetFamilies) {
    const auto elements = guarded_elements(rules, family.number == '4');
    text += fmt::format("  set guarded{0} {{ type {1} . {1} . inet_service; size {2};{3} }}\n", family.number,
                        family.type, kGuardedEntries,
                        elements.empty() ? "" : fmt::format(" elements = {{ {} }};", joined(elements)));
  }
  for (const std::string_view counter : kBypassCounters) text += fmt::format("  counter {} {{ }}\n", counter);
  text +=
      "  chain prerouting {\n"
      "    type filter hook prerouting priority mangle; policy accept;\n"
      // The link's own datagrams pass here, after one comparison instead of the whole chain.
      "    meta l4proto udp accept\n"
      // This precedes the diverting rule: a SYN may match the TIME_WAIT socket of an older flow, which only
      // tproxy can reopen.
      "    tcp flags & (fin | syn | rst | ack) == syn goto new_flows\n";
  if (!rules.fast_connect) {
    text +=
        "    meta nfproto ipv4 tcp flags & (fin | syn | rst | ack) == syn | ack"
        " update @answered4 { ip saddr . tcp sport }\n"
        "    meta nfproto ipv6 tcp flags & (fin | syn | rst | ack) == syn | ack"
        " update @answered6 { ip6 saddr . tcp sport }\n";
  }
  const std::string mark = fmt::format("meta mark set 0x{:08x} accept\n", net::divert_mark(rules.port));
  // ICMP errors ("unreachable", "too big") about packets sent with a client's address are also diverted.
  text += "    meta l4proto { tcp, icmp, icmpv6 } socket transparent 1 " + mark;
  text += "    jump strays\n";
  // If the queue of half-open connections was full, the kernel answered with a SYN cookie and kept no state:
  // only the listener can create a socket from the client's next packet.
  if (!quoted.empty()) {
    text += "    iifname != { " + joined(quoted) + " } accept\n";
    for (const SetFamily& family : kSetFamilies) text += again_rule(family);
  }
  text += "  }\n  chain strays {\n  }\n  chain new_flows {\n";
  if (rules.closed_flows.empty()) text += guarded_rules();
  text += quoted.empty() ? "    accept\n" : "    iifname != { " + joined(quoted) + " } accept\n";
  if (!rules.closed_flows.empty()) text += guarded_rules();
  text += first_rules(rules);
  // This precedes the check for a retransmitted SYN: a client whose flow was refused may use the same port
  // for its next flow.
  text +=
      "    ip daddr . tcp dport @refused4 goto plain\n"
      "    ip6 daddr . tcp dport @refused6 goto plain\n";
  if (!rules.fast_connect) {
    text +=
        "    ip daddr . tcp dport != @answered4 goto plain\n"
        "    ip6 daddr . tcp dport != @answered6 goto plain\n";
  }
  text += "    goto admit\n  }\n  chain guarded {\n" + first_rules(rules);
  for (const SetFamily& family : kSetFamilies) text += again_rule(family);
  for (const SetFamily& family : kSetFamilies) text += plain_rule(family);
  text += "    goto judge\n  }\n" + rules.closed_flows + "  chain admit {\n";
  for (const SetFamily& family : kSetFamilies) text += again_rule(family);
  for (const SetFamily& family : kSetFamilies) text += plain_rule(family);
  text += "    jump crowded\n";
  for (const SetFamily& family : kSetFamilies)
    text +=
        fmt::format("    update @sources{} {{ {} limit rate {}/second burst {} packets }} goto judge\n",
                    family.number, family.source, rules.new_flows_per_source, 2 * rules.new_flows_per_source);
  text += "    counter name over_rate goto plain\n  }\n  chain crowded {\n";
  for (const std::string& rule : limit_rules(rules.crowded)) text += "    " + rule + "\n";
  text += "  }\n  chain judge {\n";
  for (const SetFamily& family : kSetFamilies)
    text += fmt::format("    update @taken{} {{ {} }} goto take\n", family.number, family.flow);
  text += "    counter name no_entry goto plain\n  }\n  chain take {\n";
  text += fmt::format("    meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:{} ", rules.port) + mark;
  text += fmt::format("    meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:{} ", rules.port) + mark;
  text += "  }\n  chain plain {\n";
  for (const SetFamily& family : kSetFamilies)
    text += fmt::format("    delete @taken{} {{ {} }}\n", family.number, family.flow);
  for (const SetFamily& family : kSetFamilies)
    text += fmt::format("    update @plain{} {{ {} }} accept\n", family.number, family.flow);
  return text + "    accept\n  }\n}\n";
}

std::string replace_text(const RuleSet& rules) {
  // "delete" fails without a table, so one is added first; other owners' tables make both fail.
  return fmt::format("table inet {0} {{ flags owner; }}\ndelete table inet {0}\n", table_name(rules)) +
         table_text(rules);
}

std::string refuse_text(const RuleSet& rules, std::span<const boost::asio::ip::tcp::endpoint> servers) {
  std::vector<std::string> v4, v6;
  for (const auto& server : servers) {
    const address plain = config::unmapped(server.address());
    (plain.is_v4() ? v4 : v6).push_back(fmt::format("{} . {}", text_of(plain), server.port()));
  }
  std::string text;
  const std::string add = "add element inet " + table_name(rules);
  if (!v4.empty()) text += fmt::format("{} refused4 {{ {} }}\n", add, joined(v4));
  if (!v6.empty()) text += fmt::format("{} refused6 {{ {} }}\n", add, joined(v6));
  return text;
}

std::string crowded_text(const RuleSet& rules) {
  const std::string chain = "inet " + table_name(rules) + " crowded";
  std::string text = "flush chain " + chain + "\n";
  for (const std::string& rule : limit_rules(rules.crowded)) text += "add rule " + chain + " " + rule + "\n";
  return text;
}

std::string guarded_text(const RuleSet& rules) {
  std::string text;
  for (const SetFamily& family : kSetFamilies) {
    const std::string set = fmt::format("inet {} guarded{}", table_name(rules), family.number);
    text += "flush set " + set + "\n";
    const auto elements = guarded_elements(rules, family.number == '4');
    if (!elements.empty()) text += "add element " + set + " { " + joined(elements) + " }\n";
  }
  return text;
}

// Separate from table_text(), so that a kernel without `reject` can still install the table.
std::string strays_text(const RuleSet& rules) {
  const std::string chain = "inet " + table_name(rules) + " strays";
  std::string text = "flush chain " + chain + "\n";
  if (rules.guarded.empty()) return text;
  for (const SetFamily& family : kSetFamilies)
    text += fmt::format("add rule {} {} @guarded{} reject with tcp reset\n", chain, family.ends, family.number);
  return text;
}

}  // namespace longhaul::intercept
