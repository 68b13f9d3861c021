// SPDX-License-Identifier: Apache-2.0
// Tables that fit 100 columns; the most important lines come first, because a small terminal cuts the last.
#include "proxy/cli/top.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <sstream>
#include <utility>

#include "proxy/cli/answer_values.h"
#include "proxy/cli/screen_texts.h"
#include "proxy/cli/table.h"
#include "proxy/cli/verdict_lines.h"

namespace longhaul::cli {
namespace {

namespace json = boost::json;

std::string milliseconds(const json::value& value) {
  return value.is_null() ? "-" : milliseconds_text(value.to_number<double>());
}

std::uint64_t lan(const json::value& bytes) { return number(bytes.at("lan_in")) + number(bytes.at("lan_out")); }
std::uint64_t wan(const json::value& bytes) { return number(bytes.at("wan_in")) + number(bytes.at("wan_out")); }

std::string saved(const json::value& bytes) {
  const auto whole = lan(bytes);
  return whole == 0 ? "-" : share_text(1 - static_cast<double>(wan(bytes)) / static_cast<double>(whole));
}

// The loss on the UDP carrier of a link or a path.
std::string loss(const json::value& udp) {
  if (number(udp.at("packets_sent")) == 0) return "-";
  const auto lost = number(udp.at("packets_lost"));
  const auto* spurious =
      udp.as_object().if_contains("spurious_losses");  // of paths: not from an earlier version
  const auto wrong = spurious ? number(*spurious) : 0;
  return share_text(static_cast<double>(lost - std::min(lost, wrong)) /
                    static_cast<double>(number(udp.at("packets_sent"))));
}

std::string role_text(const json::value& path) {
  const auto role = text(path.at("role"));
  return role == "none" ? "down" : role;
}

}  // namespace

std::string Top::rate(const std::string& of, std::uint64_t bytes, double seconds) {
  now_[of] = bytes;
  const auto before = before_.find(of);
  if (before == before_.end() || bytes < before->second || seconds <= 0) return "-";
  return rate_text(static_cast<std::uint64_t>(8.0 * static_cast<double>(bytes - before->second) / seconds));
}

std::string Top::frame(const json::value& status, const json::value& talkers, double seconds) {
  std::ostringstream out;
  const auto& flows = status.at("flows");
  const auto& memory = status.at("memory");
  out << verdict_lines(status, has_colour) << text(status.at("site")) << ", longhaul "
      << text(status.at("version")) << ", up " << age_text(status.at("uptime_s").to_number<double>())
      << "\nLAN " << rate("lan", lan(flows.at("bytes")), seconds) << ", WAN "
      << rate("wan", wan(flows.at("bytes")), seconds) << "; " << text(flows.at("live")) << " of "
      << text(flows.at("limit")) << " flows; memory " << bytes_text(number(memory.at("bytes"))) << " of "
      << bytes_text(number(memory.at("limit_bytes"))) << "\n";
  // A daemon of an earlier version has none.
  if (const auto* objects = status.as_object().if_contains("disk_objects"); objects && !objects->is_null())
    out << "disk " << objects_use(*objects) << "; written "
        << rate("objects put", number(objects->at("put_bytes")), seconds) << ", read "
        << rate("objects read", number(objects->at("read_bytes")), seconds)
        << (objects_answer(*objects) ? "" : ", late") << '\n';
  out << '\n';

  Table links{{{"PEER"},
               {"STATE"},
               {"BY"},
               {"RTT", Align::right},
               {"LOSS", Align::right},
               {"QUEUE", Align::right},
               {"RECOVERED", Align::right},
               {"SENDS", Align::right},
               {"RECEIVES", Align::right},
               {"STREAMS", Align::right}}};
  for (const auto& link : status.at("links").as_array()) {
    // While TCP is the carrier, UDP at most sends probes: its loss and queue are not those of the link.
    const auto* udp = link.at("carrier") == "udp" ? &link.at("udp") : nullptr;
    const auto peer = text(link.at("peer"));
    links.add({peer, text(link.at("state")), text(link.at("carrier")), milliseconds(link.at("rtt_ms")),
               udp ? loss(*udp) : "-", udp ? milliseconds(udp->at("rate").at("queue_ms")) : "-",
               udp ? text(udp->at("symbols_recovered")) : "-",
               rate("sent " + peer, number(link.at("bytes_sent")), seconds),
               rate("received " + peer, number(link.at("bytes_received")), seconds),
               text(link.at("streams"))});
    // A daemon of an earlier version does not report them.
    const auto* paths = link.as_object().if_contains("paths");
    if (!paths) continue;
    for (const auto& path : paths->as_array()) {
      const auto name = text(path.at("name")), of = peer + '\n' + name;
      const bool works = path.at("role") != "none";
      links.add({"- " + name, role_text(path), "udp", works ? milliseconds(path.at("rtt_ms")) : "-",
                 loss(path), works ? milliseconds(path.at("queue_ms")) : "-", "-",
                 rate("sent " + of, number(path.at("bytes_sent")), seconds),
                 rate("received " + of, number(path.at("bytes_received")), seconds), "-"});
    }
  }
  links.shorten("PEER");
  links.print(out);
  out << '\n';

  std::string title = by;
  std::ranges::transform(title, title.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  Table largest{{{title},
                 {"FLOWS", Align::right},
                 {"LAN NOW", Align::right},
                 {"WAN NOW", Align::right},
                 {"LAN", Align::right},
                 {"WAN", Align::right},
                 {"SAVED", Align::right}}};
  for (const auto& each : talkers.at("talkers").as_array()) {
    const auto name = text(each.at("name"));
    const auto& bytes = each.at("bytes");
    largest.add({name.empty() ? "no link" : name, text(each.at("flows")), rate("lan " + by + name, lan(bytes), seconds),
                 rate("wan " + by + name, wan(bytes), seconds), bytes_text(lan(bytes)), bytes_text(wan(bytes)), saved(bytes)});
  }
  largest.shorten(title);
  largest.print(out);
  before_ = std::exchange(now_, {});
  return std::move(out).str();
}

}  // namespace longhaul::cli
