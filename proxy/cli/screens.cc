// SPDX-License-Identifier: Apache-2.0
// Formats the daemon's responses. Sends no requests and computes only units.
#include "proxy/cli/screens.h"

#include <boost/json/object.hpp>
#include <ostream>

#include "proxy/cli/answer_values.h"
#include "proxy/cli/link_lines.h"
#include "proxy/cli/screen_texts.h"
#include "proxy/cli/table.h"
#include "proxy/cli/verdict_lines.h"
#include "proxy/cli/wrap.h"

namespace longhaul::cli {
namespace {

namespace json = boost::json;

// Contents of the disk dictionary, and its errors.
std::string disk_line(const json::value& disk) {
  if (disk.is_null()) return "no dictionary on disk";
  std::string said = bytes_text(number(disk.at("bytes"))) + " of " +
                     bytes_text(number(disk.at("limit_bytes"))) + " in " + text(disk.at("segments")) +
                     " segments; " + bytes_text(number(disk.at("put_bytes"))) + " written, " +
                     bytes_text(number(disk.at("load_bytes"))) + " loaded";
  if (!disk.at("ready").as_bool())
    said += ", not in use: its directory is still being read, or cannot be read";
  const auto note = [&](std::string_view name, std::string_view what) {
    const auto count = number(disk.at(name));
    if (count > 0) said += ", " + std::to_string(count) + std::string(what);
  };
  note("evicted", " evicted");
  note("refused", " refused (disk or write queue full)");
  note("failed", " write errors");
  note("damaged", " damaged and dropped");
  note("lost", " lost with the directory");
  note("loads_failed", " read errors");
  return said;
}

// Stored responses on disk, and its errors.
std::string objects_line(const json::value& objects) {
  std::string said = objects_use(objects) + "; " + bytes_text(number(objects.at("put_bytes"))) +
                     " written, " + bytes_text(number(objects.at("read_bytes"))) + " read";
  if (!objects.at("ready").as_bool())
    said += ", not in use: their directory is still being read, or cannot be read";
  else if (!objects_answer(objects))
    said += ", temporarily not read: the disk responds too slowly";
  // A daemon of an earlier version does not have all of them.
  const auto note = [&](std::string_view name, std::string_view what) {
    const auto* of = objects.as_object().if_contains(name);
    const auto count = of ? number(*of) : 0;
    if (count > 0) said += ", " + std::to_string(count) + std::string(what);
  };
  note("evicted", " evicted");
  note("refused", " refused (too large, or write queue full)");
  note("failed", " write errors");
  note("damaged", " damaged and dropped");
  note("reads_late", " late reads");
  note("reads_skipped", " reads skipped because of slow responses");
  return said;
}

// The words for a limit of intercept::kBypassCounters.
std::string limit_words(std::string_view limit) {
  return limit == "over_rate"      ? "above new_flows_per_source"
         : limit == "source_limit" ? "above flows_per_source"
         : limit == "flow_limit"   ? "above [limits] flows"
         : limit == "no_entry"     ? "in a flood of new connections"
                                   : "by " + std::string(limit);
}

// Connections that bypassed the proxy because of a limit. A daemon of an earlier version does not report
// them.
std::string bypassed_words(const json::value& intercept) {
  std::string said;
  const auto* bypassed = intercept.as_object().if_contains("bypassed");
  if (!bypassed) return said;
  for (const auto& [limit, connections] : bypassed->as_object())
    if (number(connections) > 0)
      said += (said.empty() ? "; connections that bypassed the proxy: " : ", ") + text(connections) + " " +
              limit_words(limit);
  return said;
}

void show_ports(const json::array& ports, std::ostream& out) {
  Table table{{{"PORT", Align::right},
               {"FLOWS", Align::right},
               {"LAN IN", Align::right},
               {"WAN OUT", Align::right},
               {"WAN IN", Align::right},
               {"LAN OUT", Align::right},
               {"OUT REDUCED TO", Align::right},
               {"IN REDUCED TO", Align::right}}};
  for (const auto& port : ports) {
    const auto& bytes = port.at("bytes");
    const auto share = [&](std::string_view direction) {
      const auto& counted = port.at("blocks").at(direction);
      return percent(number(counted.at("encoded")), number(counted.at("plain")));
    };
    table.add({port.at("port").is_null() ? "other" : text(port.at("port")), text(port.at("started")),
               bytes_text(number(bytes.at("lan_in"))), bytes_text(number(bytes.at("wan_out"))),
               bytes_text(number(bytes.at("wan_in"))), bytes_text(number(bytes.at("lan_out"))), share("out"),
               share("in")});
  }
  if (table.empty()) return;
  out << '\n';
  table.print(out);
}

// The daemon's rate over the last seconds; null in the first second. A daemon of an earlier version does not
// report it.
std::string rate_of(const json::value& link, std::string_view direction) {
  const auto* now = link.as_object().if_contains("throughput");
  return now == nullptr || now->is_null() ? "-" : rate_text(number(now->at(direction)));
}

void show_link_notes(const json::value& link, std::ostream& out) {
  const auto note = [&](std::string_view what) { line(out, text(link.at("peer")) + ":", what); };
  const auto address = text(link.at("remote_address"));
  note((address == "-" ? "" : "at " + address + "; ") + text(link.at("streams")) +
       " streams; credit granted " + bytes_text(number(link.at("credit_granted"))) + ", retained " +
       bytes_text(number(link.at("bytes_retained"))));
  if (link.at("state") == "up" && !link.at("udp").is_null()) note(udp_line(link));
  // A daemon of an earlier version does not report them.
  if (const auto* paths = link.as_object().if_contains("paths"))
    for (const auto& path : paths->as_array()) note(path_line(path));
  if (!link.at("reduction").is_null()) note(reduction_line(link.at("reduction")));
  if (const auto unlike = unlike_modules_line(link); !unlike.empty()) note(unlike);
  if (!link.at("last_error").is_null() && link.at("state") != "up")
    note("last connection error: " + text(link.at("last_error")));
}

void show_links(const json::array& links, std::ostream& out) {
  Table table{{{"PEER"},
               {"STATE"},
               {"SINCE", Align::right},
               {"CARRIER"},
               {"RTT", Align::right},
               {"OUT NOW", Align::right},
               {"IN NOW", Align::right},
               {"SENT", Align::right},
               {"RECEIVED", Align::right}}};
  for (const auto& link : links) {
    const bool carries = link.at("state") == "up" || link.at("state") == "silent";
    table.add({text(link.at("peer")), text(link.at("state")), age(link.at("state_age_s")),
               carries ? text(link.at("carrier")) : "-", rtt(link.at("rtt_ms")), rate_of(link, "out_bits"),
               rate_of(link, "in_bits"), bytes_text(number(link.at("bytes_sent"))),
               bytes_text(number(link.at("bytes_received")))});
  }
  if (table.empty()) return;
  table.shorten("PEER");  // the notes have it whole
  out << '\n';
  table.print(out);
  for (const auto& link : links) show_link_notes(link, out);
}

void show_modules(const json::array& modules, std::ostream& out) {
  if (!modules.empty()) out << '\n';
  for (const auto& module : modules)
    line(out, text(module.at("peer")) + ":",
         "module " + text(module.at("module")) + ": " + text(module.at("live")) + " live flows, " +
             text(module.at("flows")) + " since start; " + counters_line(module.at("counters")));
}

void show_reasons(const json::value& flows, std::ostream& out) {
  Table table{{{"REASON"}, {"LIVE", Align::right}, {"SINCE START", Align::right}}};
  for (const auto& [code, count] : flows.at("by_reason").as_object())
    if (number(count) > 0)
      table.add({std::string(code), text(flows.at("live_by_reason").at(code)), text(count)});
  if (table.empty()) return;
  out << '\n';
  table.print(out);
}

// The privileges of the daemon.
std::string process_line(const json::value& process) {
  const auto& capabilities = process.at("capabilities").as_array();
  std::string said = "user " + text(process.at("user")) + "; capabilities";
  if (capabilities.empty()) said += " none";
  constexpr std::size_t kMostNamed = 4;  // root has about forty
  for (std::size_t i = 0; i < capabilities.size() && capabilities.size() <= kMostNamed; ++i)
    said += (i == 0 ? " " : ", ") + text(capabilities[i]);
  if (capabilities.size() > kMostNamed) said += " " + std::to_string(capabilities.size()) + " in all";
  said +=
      process.at("system_call_filter").as_bool() ? "; system calls filtered" : "; system calls not filtered";
  const auto version = number(process.at("landlock_version"));
  return said + (version == 0 ? "; no Landlock" : "; Landlock " + std::to_string(version));
}

std::string memory_parts_line(const json::array& parts) {
  std::string text;
  for (const auto& part : parts)
    text += (text.empty() ? ": " : ", ") + longhaul::cli::text(part.at("part")) + " " +
            bytes_text(number(part.at("bytes"))) + " of " + bytes_text(number(part.at("limit_bytes")));
  return text;
}

// Empty if fail = closed is not configured.
std::string fail_closed_line(const json::value& fail_closed) {
  const auto state = text(fail_closed.at("state"));
  if (state == "enforced")
    return state + ": flows that must use the link are refused while it is down or the daemon is stopped";
  if (state == "lifted") return state + " by command: while the link is down, flows leave unencrypted";
  if (state == "missing") return state + ": " + text(fail_closed.at("error"));
  return "";
}

// The rates of all flows in the last seconds; empty if unknown.
std::string throughput_line(const json::value& status) {
  const auto* now = status.as_object().if_contains("throughput");
  if (now == nullptr || now->is_null()) return "";
  const auto rate = [&](std::string_view of) { return rate_text(number(now->at(of))); };
  return "LAN in " + rate("lan_in_bits") + ", out " + rate("lan_out_bits") + "; WAN in " +
         rate("wan_in_bits") + ", out " + rate("wan_out_bits");
}

}  // namespace

void show_status(const json::value& status, std::ostream& out) {
  const auto& flows = status.at("flows");
  const auto& memory = status.at("memory");
  const auto& intercept = status.at("intercept");
  out << verdict_lines(status, false);
  line(out, "site",
       text(status.at("site")) + ", longhaul " + text(status.at("version")) + ", up " +
           age(status.at("uptime_s")));
  line(out, "process", process_line(status.at("process")));
  line(out, "flows",
       text(flows.at("live")) + " live of at most " + text(flows.at("limit")) + "; " +
           text(flows.at("started")) + " started, " + text(flows.at("ended")) + " ended, " +
           text(flows.at("reset")) + " of these reset");
  line(out, "bytes", bytes_line(flows.at("bytes")));
  if (const auto now = throughput_line(status); !now.empty()) line(out, "now", now);
  line(out, "memory",
       bytes_text(number(memory.at("bytes"))) + " of " + bytes_text(number(memory.at("limit_bytes"))) +
           memory_parts_line(memory.at("parts").as_array()));
  line(out, "disk", disk_line(status.at("disk_dictionary")));
  // A daemon of an earlier version has none.
  if (const auto* objects = status.as_object().if_contains("disk_objects"); objects && !objects->is_null())
    line(out, "", objects_line(*objects));
  line(out, "handshakes",
       text(status.at("handshakes").at("now")) + " of " + text(status.at("handshakes").at("limit")));
  if (const auto refused = counters_line(status.at("strangers").at("refused")); refused != kNothingYet)
    line(out, "refused", "connections to the link's port: " + refused);
  if (const auto& lost = status.at("lost_writes").as_object();
      !lost.empty() && number(lost.at("waiting")) != 0)
    line(out, "lost writes", text(lost.at("waiting")) + " files whose clients have not been notified yet");
  const auto state = text(intercept.at("state"));
  line(out, "intercept",
       (state == "not_configured" ? "not configured" : state) +
           (intercept.at("error").is_null() ? "" : ": " + text(intercept.at("error"))) +
           bypassed_words(intercept));
  if (const auto closed = fail_closed_line(status.at("fail_closed")); !closed.empty())
    line(out, "fail closed", closed);
  line(out, "features", preset_words(status.at("preset")) + features_line(status.at("features")));
  for (const auto& [name, value] : status.at("features_until_restart").as_object())
    line(out, "", std::string(name) + " was changed with set; a restart brings back " + text(value));
  show_links(status.at("links").as_array(), out);
  show_ports(status.at("ports").as_array(), out);
  show_modules(status.at("modules").as_array(), out);
  show_reasons(flows, out);
}

void show_features(const json::value& features, std::ostream& out) {
  Table table{{{"FEATURE"}, {"VALUE"}}};
  for (const auto& [name, value] : features.as_object()) table.add({std::string(name), text(value)});
  table.print(out);
}

void show_changed(const json::value& answer, std::ostream& out) {
  const auto& changed = answer.at("changed").as_array();
  if (changed.empty()) out << "nothing changed: the features already have these values\n";
  for (const auto& name : changed)
    out << text(name) << " is now " << text(answer.at("features").at(name.as_string())) << '\n';
  if (!changed.empty())
    out << "until the daemon restarts; to keep it, also change [features] in the configuration file\n";
}

void show_cleared_objects(const json::value& answer, std::ostream& out) {
  out << "cleared " << bytes_text(number(answer.at("object_bytes"))) << " of stored responses\n";
  const auto* key = answer.as_object().if_contains("object_key");
  if (key && *key == "kept")
    out << wrapped(
        "the encryption key of stored responses could not be destroyed (see the log): copies of the files "
        "can "
        "still be decrypted");
  if (key && *key == "pending") out << "the encryption key of stored responses is still being destroyed\n";
}

void show_cleared(const json::value& answer, std::ostream& out) {
  out << "cleared " << bytes_text(number(answer.at("memory_bytes"))) << " in memory and "
      << bytes_text(number(answer.at("disk_bytes"))) << " on disk\n";
  if (number(answer.at("object_bytes")) > 0) show_cleared_objects(answer, out);
  for (const auto& peer : answer.at("peers").as_array())
    if (peer.at("disk_bytes").is_null())
      out << text(peer.at("peer")) << " has not reported what it cleared\n";
    else
      out << text(peer.at("peer")) << " cleared " << bytes_text(number(peer.at("disk_bytes")))
          << " on its disk\n";
  const auto& key = answer.at("disk_key");
  if (key == "destroyed")
    out << wrapped("the encryption key of the dictionary on disk was destroyed: copies of its files can no longer be "
                   "decrypted");
  if (key == "kept")
    out << wrapped(
        "the encryption key of the dictionary on disk could not be destroyed (see the log): copies of the "
        "files can still be decrypted");
  if (key == "pending") out << "the encryption key of the dictionary on disk is still being destroyed\n";
}

void show_reloaded(const json::value& answer, std::ostream& out) {
  const auto& changed = answer.at("changed").as_array();
  if (changed.empty()) out << "nothing changed: the daemon already uses this configuration\n";
  for (const auto& each : changed) out << "changed " << text(each) << '\n';
}

void show_rules(const json::value& intercept, std::ostream& out) {
  const auto state = text(intercept.at("state"));
  out << "# "
      << (state == "up"     ? "installed"
          : state == "down" ? "not installed"
                            : "no interception is configured")
      << '\n'
      << text(intercept.at("rules"));
  const auto& closed = intercept.at("fail_closed");
  if (const auto state_of_it = text(closed.at("state")); state_of_it != "not_configured")
    out << "# fail = closed is " << state_of_it << '\n' << text(closed.at("rules"));
}

}  // namespace longhaul::cli
