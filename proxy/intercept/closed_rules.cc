// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/closed_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "proxy/intercept/nft_rules.h"

namespace longhaul::intercept {

using config::Fail;
using config::Network;
using config::Rule;

namespace {

struct Family {
  bool v4;
  const char* ip;          // of "ip daddr"
  const char* peers;       // the set of the peers' networks
  const char* type;        // of that set's elements
  const char* any;         // every packet of the family
  const char* later_part;  // fragments except the first: they have no ports
};
constexpr Family kIpFamilies[] = {
    {true, "ip", "@peers4", "ipv4_addr", "meta nfproto ipv4", "ip frag-off & 0x1fff != 0"},
    {false, "ip6", "@peers6", "ipv6_addr", "meta nfproto ipv6", "frag frag-off != 0"}};

// The role of a packet's sender in the flow. A SYN is sent by the client. The sender of any other packet is
// unknown without connection tracking.
enum class Sender : std::uint8_t { client, server };
enum class Anyone : std::uint8_t { no, yes };  // yes: the client may be anywhere; no: only at a peer's site

// Prefixes are nested or disjoint; nested ones are redundant, and nftables rejects them.
std::vector<Network> without_nested(std::vector<Network> networks) {
  std::sort(networks.begin(), networks.end(),
            [](const Network& a, const Network& b) { return a.prefix_length < b.prefix_length; });
  std::vector<Network> kept;
  for (const Network& network : networks)
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const Network& wide) { return contains(wide, network.address); }))
      kept.push_back(network);
  return kept;
}

template <class List, class Print>
std::string joined_list(const List& list, Print print) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + print(item);
  return text;
}

std::string elements(const std::vector<Network>& networks, const Family& family) {
  std::vector<Network> own;
  std::copy_if(networks.begin(), networks.end(), std::back_inserter(own),
               [&](const Network& network) { return network.address.is_v4() == family.v4; });
  return joined_list(without_nested(own), [](const Network& network) { return config::to_text(network); });
}

// "ip daddr { … } "; empty for an empty list, which means everywhere; nullopt if the rule does not concern
// the family.
std::optional<std::string> address_match(const std::vector<Network>& networks, const Family& family,
                                         std::string_view field) {
  if (networks.empty()) return "";
  const std::string own = elements(networks, family);
  if (own.empty()) return std::nullopt;
  return fmt::format("{} {} {{ {} }} ", family.ip, field, own);
}

struct Verdicts {
  std::string_view closed, open, otherwise;

  std::string_view of(const Rule& rule) const {
    if (!rule.fail) return otherwise;
    return *rule.fail == Fail::closed ? closed : open;
  }
};

class Lines {
 public:
  Lines(const ClosedRules& rules, const Verdicts& verdicts) : rules_(rules), verdicts_(verdicts) {}

  void add(const Rule& rule, Sender sender, Anyone anyone) {
    const bool forth = sender == Sender::client;
    const std::string_view client = forth ? "saddr" : "daddr", server = forth ? "daddr" : "saddr";
    const bool closed = rule.fail == Fail::closed;
    std::string ports, not_new;
    if (!rule.to_ports.empty())
      ports =
          fmt::format("tcp {} {{ {} }} ", forth ? "dport" : "sport",
                      joined_list(rule.to_ports, [](std::uint16_t port) { return std::to_string(port); }));
    // A SYN may pass only in the role of the client, so that closed flows cannot pass as replies.
    if (!forth && !closed) not_new = "tcp flags & (fin | syn | rst | ack) != syn ";
    bool both_at_once = false;
    for (const Family& family : kIpFamilies) {
      const auto from = address_match(rule.from_networks, family, client);
      const auto to = address_match(rule.to_networks, family, server);
      if (!from || !to) continue;
      std::string ends = *from + *to;
      if (anyone == Anyone::no) {
        if (elements(rules_.peers, family).empty()) continue;
        ends = fmt::format("{} {} {} ", family.ip, client, family.peers) + ends;
      }
      if (!both_at_once) text_ += fmt::format("    {}{}{}{}\n", ends, ports, not_new, verdicts_.of(rule));
      if (closed && !ports.empty())
        text_ += fmt::format("    {}{} {}\n", ends, family.later_part, verdicts_.closed);
      both_at_once = ends.empty();  // nothing in the line depends on a family
    }
  }

  // Adds the flows without a matching rule: those between this site and the peers' sites.
  void add_otherwise(std::string_view field, std::string_view closed) {
    if (rules_.otherwise != Fail::closed) return;
    for (const Family& family : kIpFamilies)
      if (!elements(rules_.peers, family).empty())
        text_ += fmt::format("    {} {} {} {}\n", family.ip, field, family.peers, closed);
  }

  std::string take() { return std::move(text_); }

 private:
  const ClosedRules& rules_;
  const Verdicts verdicts_;
  std::string text_;
};

std::string peer_sets(const ClosedRules& rules) {
  std::string text;
  for (const Family& family : kIpFamilies)
    if (const std::string own = elements(rules.peers, family); !own.empty())
      text += fmt::format("  set {} {{ type {}; flags interval; elements = {{ {} }}; }}\n", family.peers + 1,
                          family.type, own);
  return text;
}

std::string chain(std::string_view name, std::string_view lines) {
  return fmt::format("  chain {} {{\n{}  }}\n", name, lines);
}

// Packets from a LAN: of a local client, or of a local server whose client is at a peer's site. Packets to a
// LAN are the same with the roles exchanged.
std::string judge(const ClosedRules& rules, std::string_view name, std::string_view peer_field,
                  std::string_view closed, Sender of_our_client) {
  const std::string otherwise = fmt::format("{}_otherwise", name);
  const std::string go_on = "goto " + otherwise;
  Lines lines(rules, {.closed = closed, .open = "accept", .otherwise = go_on});
  const Sender of_theirs = of_our_client == Sender::client ? Sender::server : Sender::client;
  for (const Rule& rule : rules.rules) {
    lines.add(rule, of_our_client, Anyone::yes);
    lines.add(rule, of_theirs, Anyone::no);
  }
  std::string text = lines.take() + "    " + go_on + "\n";
  Lines rest(rules, {});
  rest.add_otherwise(peer_field, closed);
  return chain(name, text) + chain(otherwise, rest.take());
}

}  // namespace

bool ClosedRules::close_something() const {
  return (otherwise == Fail::closed && !peers.empty()) ||
         std::any_of(rules.begin(), rules.end(), [](const Rule& rule) { return rule.fail == Fail::closed; });
}

config::TextResult<ClosedRules> closed_rules(const config::Config& config) {
  const auto& intercept = config.intercept;
  const bool takes_flows = intercept.mode == config::Intercept::Mode::tproxy;
  const bool shows_clients =
      (config.link.listen || !config.link.allow.empty()) && intercept.source != config::Source::proxy;
  ClosedRules closed{.interfaces = {}, .port = intercept.port, .peers = {}, .rules = {}};
  if (!takes_flows && !shows_clients) return closed;
  for (const std::string& name : intercept.interfaces)
    if (!is_interface_name(name)) return config::TextError{"\"" + name + "\" is not a valid interface name"};
  closed.interfaces = intercept.interfaces;
  closed.otherwise = intercept.fail;
  for (const config::Peer& peer : config.peers)
    closed.peers.insert(closed.peers.end(), peer.networks.begin(), peer.networks.end());
  closed.peers = without_nested(std::move(closed.peers));
  closed.rules = config.rules;
  return closed;
}

std::string closed_table_name(std::uint16_t port) { return "longhaul_closed_" + std::to_string(port); }

std::string closed_table_text(const ClosedRules& rules) {
  std::string text = fmt::format(
      "table inet {} {{\n"
      "  comment \"fail = closed of Longhaul; removed by: longhaul fail-closed remove FILE.toml\"\n",
      closed_table_name(rules.port));
  text += peer_sets(rules);
  text +=
      "  chain forward {\n"
      "    type filter hook forward priority filter; policy accept;\n"
      "    meta l4proto != tcp accept\n";
  if (rules.interfaces.empty()) {
    for (const Family& family : kIpFamilies)
      if (!elements(rules.peers, family).empty())
        text += fmt::format("    {0} daddr {1} goto leaving\n    {0} saddr {1} goto arriving\n", family.ip,
                            family.peers);
  } else {
    const std::string names = joined_list(rules.interfaces, [](const std::string& name) {
      assert(is_interface_name(name));
      return '"' + name + '"';
    });
    text += fmt::format("    iifname {{ {0} }} goto leaving\n    oifname {{ {0} }} goto arriving\n", names);
  }
  text += "  }\n";
  text += judge(rules, "leaving", "daddr", "goto refuse", Sender::client);
  // A reply to a packet from the WAN would bypass the link.
  text += judge(rules, "arriving", "saddr", "goto discard", Sender::server);
  text += chain("refuse", "    counter reject with tcp reset\n    drop\n");
  text += chain("discard", "    counter drop\n");
  return text + "}\n";
}

std::string remove_closed_text(std::uint16_t port) {
  // "delete" fails without a table, so one is added first.
  return fmt::format("table inet {0}\ndelete table inet {0}\n", closed_table_name(port));
}

std::string replace_closed_text(const ClosedRules& rules) {
  return remove_closed_text(rules.port) + closed_table_text(rules);
}

std::string closed_flows_text(const ClosedRules& rules, std::string_view closed) {
  Lines lines(rules, {.closed = closed, .open = "return", .otherwise = "goto closed_otherwise"});
  for (const Rule& rule : rules.rules) lines.add(rule, Sender::client, Anyone::yes);
  Lines rest(rules, {});
  rest.add_otherwise("daddr", closed);
  return peer_sets(rules) + chain("closed_flows", lines.take() + "    goto closed_otherwise\n") +
         chain("closed_otherwise", rest.take());
}

}  // namespace longhaul::intercept
