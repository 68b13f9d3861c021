// SPDX-License-Identifier: Apache-2.0
// The screens of `longhaul flows` and `longhaul why`.
#include <fmt/chrono.h>

#include <boost/json/object.hpp>
#include <ostream>

#include "proxy/cli/answer_values.h"
#include "proxy/cli/link_lines.h"
#include "proxy/cli/screen_texts.h"
#include "proxy/cli/screens.h"
#include "proxy/cli/table.h"
#include "proxy/cli/wrap.h"

namespace longhaul::cli {
namespace {

namespace json = boost::json;

std::string module_text(const json::value& module) {
  if (module.is_null()) return "-";
  return text(module.at("name")) + (text(module.at("state")) == "running" ? "" : " (stepped aside)");
}

std::string over_or_past(const json::value& flow) {
  return flow.at("peer").is_null() ? "bypassing the link" : "over the link to " + text(flow.at("peer"));
}

// The file, the lost part, and the reason.
std::string lost_words(const json::value& lost) {
  std::string ranges;
  for (const auto& range : lost.at("ranges").as_array())
    ranges += (ranges.empty() ? " bytes " : ", ") + text(range.at(0)) + '-' + text(range.at(1));
  return text(lost.at("file")) + (ranges.empty() ? " unknown bytes" : ranges) + " (" +
         text(lost.at("cause")) + ')';
}

std::string_view how_words(std::string_view how) {
  if (how == "next_open") return "by an error in the response to an open of the file";
  if (how == "late_error") return "by an error in the response to a later request";
  if (how == "reset") return "by a reset of its connection";
  return how;
}

std::string utc(const json::value& seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds.to_number<std::time_t>()));
}

// A daemon of an earlier version does not report it.
std::string reset_words(const json::value& flow) {
  const auto* by = flow.as_object().if_contains("reset_by");
  if (!by || by->is_null()) return "";
  const auto party = text(*by);
  return party == "link" ? " because the link was lost"
                         : " by the " + party + (party == "near" || party == "far" ? " proxy" : "");
}

}  // namespace

void show_flows(const json::array& flows, std::uint64_t live, std::ostream& out) {
  if (flows.empty()) {
    out << (live == 0 ? "no flows are live" : "no flow matches (" + std::to_string(live) + " live flows)")
        << '\n';
    return;
  }
  Table table{{{"FLOW", Align::right},
               {"CLIENT"},
               {"DESTINATION"},
               {"PEER"},
               {"REASON"},
               {"MODULE"},
               {"AGE", Align::right},
               {"LAN", Align::right},
               {"WAN", Align::right}}};
  for (const auto& flow : flows) {
    const auto& bytes = flow.at("bytes");
    table.add({text(flow.at("id")), text(flow.at("client")), text(flow.at("destination")), text(flow.at("peer")),
               text(flow.at("reason")), module_text(flow.at("module")), age(flow.at("age_s")),
               bytes_text(number(bytes.at("lan_in")) + number(bytes.at("lan_out"))),
               bytes_text(number(bytes.at("wan_in")) + number(bytes.at("wan_out")))});
  }
  // Omit columns with the same value in all rows.
  if (table.says_nothing("PEER")) table.remove("PEER");
  std::string removed;
  for (const char* title : {"MODULE", "PEER", "AGE"})
    if (table.width() > kScreenWidth && table.has(title)) {
      if (!table.says_nothing(title)) removed += (removed.empty() ? "" : ", ") + std::string(title);
      table.remove(title);
    }
  if (table.width() > kScreenWidth) {  // long IPv6 addresses, or names
    table.put_below("DESTINATION");
    table.shorten("CLIENT");
  }
  table.print(out);
  if (!removed.empty())
    out << "Too wide for this screen: " << removed << "; longhaul flows --json prints all.\n";
  if (flows.size() < live) out << flows.size() << " of " << live << " live flows\n";
}

void show_why(const json::value& why, std::ostream& out) {
  const auto& flow = why.at("flow");
  if (flow.is_null()) {
    const auto path = text(why.at("path"));
    const auto fate = path == "refused"           ? std::string("be refused")
                      : path == "over_link"       ? "use the link to " + text(why.at("peer"))
                      : path == "not_intercepted" ? std::string("not reach this proxy")
                      : path == "for_peer"        ? "come over the link from " + text(why.at("peer")) +
                                                 " and reach its server from here"
                                           : std::string("bypass the link");
    // If only a server was given, the daemon assumes a client.
    if (const auto* client = why.as_object().if_contains("assumed_client"))
      line(out, "flow",
           "a new connection from " + text(*client) + " (assumed) to " + text(why.at("server")) + " would " +
               fate);
    else
      line(out, "flow", text(why.at("tuple")) + " is not live; a new connection would " + fate);
    line(out, "rule",
         why.at("rule").is_null() ? "no [[rule]] matches"
                                  : "[[rule]] number " + text(why.at("rule")) + " matches");
  } else {
    const auto state = text(flow.at("state"));
    line(out, "flow",
         text(flow.at("id")) + ": " + text(flow.at("client")) + " to " + text(flow.at("destination")));
    line(out, "origin", text(flow.at("origin")) + ", " + over_or_past(flow));
    line(out, "state",
         state == "live" ? "live for " + age(flow.at("age_s"))
                         : state + reset_words(flow) + ", no longer live");
    if (!flow.at("rtt_ms").is_null()) line(out, "rtt", rtt(flow.at("rtt_ms")));
    line(out, "bytes", bytes_line(flow.at("bytes")));
    const auto& blocks = flow.at("blocks");
    if (const auto& module = flow.at("module"); !module.is_null()) {
      line(out, "module", module_text(module) + ": " + counters_line(module.at("counters")));
      if (const auto detail = text(module.at("detail")); !detail.empty()) line(out, "", detail);
    }
    line(out, "blocks", "sent: " + stages(blocks.at("out")) + "; received: " + stages(blocks.at("in")));
  }
  line(out, "reason", text(why.at("reason")));
  line(out, "", text(why.at("sentence")));
  line(out, "remedy", text(why.at("remedy")));
  line(out, "features", features_line(why.at("features")));
  for (const auto& lost : why.at("lost_files").as_array())
    line(out, "lost writes", lost_words(lost) + ": the client gets an error when it next opens the file");
  // A daemon of an earlier version does not report it.
  if (const auto* told = why.as_object().if_contains("told_files"))
    for (const auto& each : told->as_array())
      line(out, "reported",
           lost_words(each) + ": the client was notified at " + utc(each.at("at_s")) + ' ' +
               std::string(how_words(text(each.at("how")))));
  if (flow.is_null() && !why.at("last").is_null()) {
    const auto& last = why.at("last");
    line(out, "last",
         "flow " + text(last.at("id")) + " between these addresses, " + over_or_past(last) + " (" +
             text(last.at("reason")) + "), was " + text(last.at("state")) + reset_words(last));
  }
}

}  // namespace longhaul::cli
