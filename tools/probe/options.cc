// SPDX-License-Identifier: Apache-2.0
// Stations in the order the SYN passes them; of each option, where it last was as sent and where it no longer
// is.
#include "tools/probe/options.h"

#include <algorithm>
#include <functional>

#include "tools/probe/patience.h"
#include "tools/probe/table.h"

namespace longhaul::probe {
namespace {

constexpr std::uint8_t kOfferedScale = 7;  // what Linux offers with its usual buffers

struct Field {
  const char* name;
  const char* setting;                                  // the sysctl that switches it
  std::function<std::string(const TcpOptions&)> value;  // empty: not there
};

const std::vector<Field>& fields() {
  static const std::vector<Field> kFields{
      {"MSS", "", [](const TcpOptions& o) { return o.mss ? std::to_string(*o.mss) : std::string(); }},
      {"window scale", "net.ipv4.tcp_window_scaling",
       [](const TcpOptions& o) { return o.window_scale ? std::to_string(*o.window_scale) : std::string(); }},
      {"SACK", "net.ipv4.tcp_sack",
       [](const TcpOptions& o) { return std::string(o.sack_permitted ? "yes" : ""); }},
      {"timestamps", "net.ipv4.tcp_timestamps",
       [](const TcpOptions& o) { return std::string(o.timestamps ? "yes" : ""); }}};
  return kFields;
}

std::string place(const Station& station) {
  if (station.hop == 0) return "this host";
  if (station.is_agent) return station.address + " (the agent)";
  return station.address + " (hop " + std::to_string(station.hop) + ")";
}

std::string shown(const std::string& value) { return value.empty() ? "-" : value; }

bool is_on(const HostSettings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() || found->second != "0";
}

boost::json::object options_json(const TcpOptions& options) {
  boost::json::object object;
  object["mss"] = options.mss ? boost::json::value(*options.mss) : boost::json::value(nullptr);
  object["window_scale"] =
      options.window_scale ? boost::json::value(*options.window_scale) : boost::json::value(nullptr);
  object["sack"] = options.sack_permitted;
  object["timestamps"] = options.timestamps.has_value();
  return object;
}

}  // namespace

std::vector<Change> changes_between(const std::vector<Station>& stations) {
  std::vector<Change> changes;
  for (const Field& field : fields()) {
    const Station* last = nullptr;
    for (const Station& station : stations) {
      const std::string now = field.value(station.options);
      if (now.empty() && station.cut) continue;
      // The agent saw the SYN of this host's kernel, whose scale and MSS may be others than the probe's:
      // there or not.
      const bool as_before = last == nullptr || field.value(last->options) == now ||
                             (station.is_agent && !now.empty() && !field.value(last->options).empty());
      if (!as_before) {
        const std::string before = field.value(last->options);
        const bool back = before.empty();
        changes.push_back({field.name, shown(before), now.empty() ? "gone" : now,
                           "between " + place(*last) + ", where it was " +
                               (back ? "absent" : "still " + before) + ", and " + place(station) +
                               ", where it is " + (now.empty() ? "absent" : now) +
                               ": one of these two, or a device between them, changed it"});
      }
      last = &station;
    }
  }
  return changes;
}

std::vector<std::string> judge_answer(const OptionsReport& report) {
  std::vector<std::string> remarks;
  if (report.refused)
    remarks.push_back("nothing listens on port " + std::to_string(report.port) +
                      ": it answers with a reset, which carries no options");
  if (!report.answered)
    remarks.push_back("no answer from port " + std::to_string(report.port) +
                      ": a firewall drops it, or the host is down");
  if (!report.answer) return remarks;
  for (const Field& field : fields()) {
    if (*field.setting == 0) continue;
    if (!field.value(*report.answer).empty()) continue;
    const bool gone_before = std::any_of(
        report.changes.begin(), report.changes.end(),
        [&](const Change& change) { return change.option == field.name && change.after == "gone"; });
    const std::string start = std::string(field.name) + " is not in the answer: ";
    if (gone_before)
      remarks.push_back(start + "the far host could not offer it, because this host's offer did not arrive");
    else if (!report.far_settings)
      remarks.push_back(start + report.address + " does not offer it (" + field.setting +
                        " of Linux), or it is removed after the last hop above or on the way back; "
                        "an agent there shows which");
    else if (!is_on(*report.far_settings, field.setting))
      remarks.push_back(start + report.address + " does not offer it: " + field.setting + " is 0 there");
    else if (!report.seen_at)
      remarks.push_back(start + "it is enabled at " + report.address +
                        ", so it is removed after the last hop above or on the way back; the agent "
                        "there could not observe what arrived");
    else if (*report.seen_at != report.port)
      remarks.push_back(start + "it arrived at port " + std::to_string(*report.seen_at) + " of " +
                        report.address +
                        " and is enabled there, so it is removed on the way back, or after the last "
                        "hop above by a device that inspects only port " +
                        std::to_string(report.port));
    else
      remarks.push_back(start + "it arrived there and is enabled there, so it is removed on the way back");
  }
  return remarks;
}

OptionsReport probe_options(const OptionsRequest& request, const Stop& stop) {
  OptionsReport report;
  report.host = request.host;
  report.port = request.port;
  const Endpoint to = resolve(request.host, request.family);
  report.address = text_of(to);
  Prober prober(to, Kind::tcp, request.port, stop);
  const unsigned headers = ip_header_bytes(to.family()) + 20;
  const TcpOptions offered{static_cast<std::uint16_t>(std::min(prober.interface_mtu() - headers, 65'495u)),
                           kOfferedScale,
                           true,
                           Timestamps{1, 0},
                           {}};
  report.stations.push_back({0, "this host", false, offered, false});

  const auto ask = [&](unsigned hop) {
    Outcome outcome;
    for (unsigned attempt = 0; attempt < kTries && outcome.fate == Fate::silent; ++attempt)
      outcome = prober.syn(hop, offered, request.wait);
    return outcome;
  };
  const auto take_answer = [&](const Outcome& outcome) {
    report.answered = true;
    report.refused = (outcome.answer.tcp_flags & kRst) != 0;
    if (!report.refused && outcome.answer.tcp_options) report.answer = outcome.answer.tcp_options->options;
  };
  unsigned silent = 0;
  for (unsigned hop = 1; hop <= request.most_hops && !report.answered && silent < kSilentHops; ++hop) {
    const Outcome outcome = ask(hop);
    if (outcome.fate == Fate::interrupted) {
      report.interrupted = true;
      return report;
    }
    silent = outcome.fate == Fate::answered ? 0 : silent + 1;
    if (outcome.fate != Fate::answered) continue;
    if (outcome.answer.tcp_flags != 0) {
      take_answer(outcome);
    } else if (outcome.answer.tcp_options) {
      report.stations.push_back({hop, text_of(outcome.from), false, outcome.answer.tcp_options->options,
                                 outcome.answer.tcp_options->cut});
    } else {  // quoted so little that no option is there
      report.stations.push_back({hop, text_of(outcome.from), false, {}, true});
    }
  }
  if (!report.answered)
    if (const Outcome outcome = ask(kFarAway);
        outcome.fate == Fate::answered && outcome.answer.tcp_flags != 0)
      take_answer(outcome);
  report.changes = changes_between(report.stations);
  report.remarks = judge_answer(report);
  const HostSettings ours = read_host_settings();
  for (const Field& field : fields())
    if (*field.setting != 0 && !is_on(ours, field.setting))
      report.remarks.push_back(std::string("this host's own connections do not offer ") + field.name + ": " +
                               field.setting + " is 0 (the probe offered it nevertheless)");
  return report;
}

std::optional<HeaderOptions> read_saved_syn(Bytes saved) {
  if (saved.empty()) return std::nullopt;
  const auto first = std::to_integer<unsigned>(saved[0]);
  std::size_t header = 0;
  if (first >> 4 == 4) header = std::size_t{first % 16} * 4;
  if (first >> 4 == 6) header = 40;  // extension headers of a SYN are rare enough to be left out
  if (header < 20 || saved.size() < header) return std::nullopt;
  return read_header_options(saved.subspan(header));
}

boost::json::object to_json(const OptionsReport& report) {
  boost::json::array stations, changes, remarks;
  for (const Station& station : report.stations) {
    boost::json::object item{{"hop", station.hop},
                             {"address", station.address},
                             {"agent", station.is_agent},
                             {"cut", station.cut}};
    item["options"] = options_json(station.options);
    stations.push_back(item);
  }
  for (const Change& change : report.changes)
    changes.push_back(boost::json::object{{"option", change.option},
                                          {"before", change.before},
                                          {"after", change.after},
                                          {"where", change.between}});
  for (const std::string& remark : report.remarks) remarks.push_back(boost::json::string(remark));
  boost::json::object object{{"host", report.host},         {"address", report.address},
                             {"port", report.port},         {"stations", stations},
                             {"answered", report.answered}, {"refused", report.refused},
                             {"changes", changes},          {"remarks", remarks}};
  object["answer"] =
      report.answer ? boost::json::value(options_json(*report.answer)) : boost::json::value(nullptr);
  return object;
}

void print(const OptionsReport& report, std::ostream& out) {
  out << "TCP options to " << report.host << " (" << report.address << "), port " << report.port << "\n\n";
  std::vector<std::vector<std::string>> rows{{"our SYN, as seen at"}};
  for (const Field& field : fields()) rows.front().push_back(field.name);
  const auto add = [&](const std::string& name, const TcpOptions& options, bool cut) {
    rows.push_back({name});
    for (const Field& field : fields()) {
      const std::string value = field.value(options);
      rows.back().push_back(value.empty() && cut ? "?" : shown(value));
    }
  };
  for (const Station& station : report.stations) add(place(station), station.options, station.cut);
  if (report.answer) add("the answer, as received here", *report.answer, false);
  print_table(rows, out);
  out << '\n';
  for (const Change& change : report.changes)
    out << change.option << (change.after == "gone" ? " is removed " : " is changed to " + change.after + " ")
        << change.between << '\n';
  for (const std::string& remark : report.remarks) out << remark << '\n';
  if (report.changes.empty() && report.remarks.empty()) out << "all offered options arrive unchanged\n";
}

}  // namespace longhaul::probe
