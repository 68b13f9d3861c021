// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/views.h"

#include <boost/json/array.hpp>
#include <charconv>

#include "proxy/control/flow_views.h"
#include "proxy/control/json_values.h"
#include "proxy/control/store_views.h"
#include "proxy/control/verdict.h"

namespace longhaul::control {
namespace {

namespace json = boost::json;
using config::Features;

// As in the configuration file: true and 65535 are not strings, but "auto" is one.
json::value feature_value(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  std::uint64_t number = 0;
  const auto* end = text.data() + text.size();
  if (const auto [read, error] = std::from_chars(text.data(), end, number);
      error == std::errc{} && read == end)
    return number;
  return json::string(text);
}

json::object by_reason(const flows::CountByReason& counts) {
  json::object object;
  for (const flows::Reason reason : flows::all_reasons()) object[reason->code] = flows::count(counts, reason);
  return object;
}

json::object by_party(const flows::CountByParty& counts) {
  json::object object;
  for (std::size_t i = 0; i < counts.size(); ++i) object[flows::kResetTexts[i].code] = counts[i];
  return object;
}

json::object by_refusal(const link::RefusalCounts& counts) {
  json::object object;
  for (const auto& row : link::kRefusalTable)
    object[row.code] = counts[static_cast<std::size_t>(row.refusal)];
  return object;
}

json::array view_modules(const flows::FlowTable& flows) {
  json::array modules;
  for (const auto& [of, totals] : flows.by_module_so_far())
    modules.push_back(json::object{{"peer", of.first},
                                   {"module", of.second},
                                   {"flows", totals.flows},
                                   {"live", totals.live},
                                   {"counters", view_counters(totals.counters)}});
  return modules;
}

json::array view_ports(const flows::FlowTable& flows) {
  json::array ports;
  for (const auto& [port, totals] : flows.by_port_so_far())
    ports.push_back(json::object{{"port", port == 0 ? json::value() : json::value(port)},
                                 {"started", totals.started},
                                 {"bytes", view(totals.bytes)},
                                 {"blocks", view(totals.blocks)}});
  return ports;
}

json::object view(const process::Confinement& process) {
  json::array capabilities;
  for (const std::string& name : process.capabilities) capabilities.emplace_back(name);
  return {{"user", process.user},
          {"capabilities", std::move(capabilities)},
          {"system_call_filter", process.filters_system_calls},
          {"landlock_version", process.landlock_version}};
}

json::array view_memory(const std::vector<MemoryPart>& parts) {
  json::array list;
  for (const MemoryPart& part : parts)
    list.push_back(
        json::object{{"part", part.name}, {"bytes", part.bytes}, {"limit_bytes", part.limit_bytes}});
  return list;
}

json::object view_bypassed(const Status& status) {
  json::object object;
  for (const auto& [limit, connections] : status.bypassed) object[limit] = connections;
  return object;
}

}  // namespace

json::object view(const Features& features) {
  json::object object;
  for (const auto& [name, value] : config::to_text(features)) object[name] = feature_value(value);
  return object;
}

json::object view_exports(const Status& status) {
  json::value flow_records;
  if (const auto& flows = status.flow_export)
    flow_records = {{"messages", flows->messages},
                    {"records", flows->records},
                    {"dropped_records", flows->dropped_records},
                    {"failures", flows->failures},
                    {"last_error", text_or_null(flows->last_error)}};
  json::value metrics;
  if (const auto& otlp = status.metric_export)
    metrics = {{"sent", otlp->sent}, {"failed", otlp->failed}, {"rejected_points", otlp->rejected_points},
               {"last_error", text_or_null(otlp->last_error)}};
  json::value lines;
  if (status.syslog) lines = {{"sent", status.syslog->sent}, {"lost", status.syslog->lost}, {"fails", status.syslog->fails}};
  return {{"ipfix", std::move(flow_records)}, {"otlp", std::move(metrics)}, {"syslog", std::move(lines)}};
}

// For the features that `longhaul set` has changed: the file's values, which a restart restores.
json::object view_set_by_hand(const Features& features, const Features& configured) {
  const json::object now = view(features);
  json::object changed;
  for (const auto& [name, value] : view(configured))
    if (now.at(name) != value) changed[name] = value;
  return changed;
}

json::value view_throughput(const RecentRates& rates) {
  const auto now = rates.flows();
  if (!now) return nullptr;
  return {{"lan_in_bits", now->lan_in},
          {"lan_out_bits", now->lan_out},
          {"wan_in_bits", now->wan_in},
          {"wan_out_bits", now->wan_out}};
}

json::object view_status(const Status& status, const flows::FlowTable& flows, const Features& features,
                         const Features& configured) {
  json::array links;
  for (const auto& link : status.links) {
    json::object shown = view(link);
    json::value now;
    if (const auto rates = status.rates.link(link.peer))
      now = {{"out_bits", rates->sent}, {"in_bits", rates->received}};
    shown["throughput"] = std::move(now);
    links.push_back(std::move(shown));
  }
  const auto& totals = flows.totals();
  const auto preset = config::preset_of(features);
  return {
      {"site", status.site},
      {"version", status.version},
      {"uptime_s", status.uptime.count()},
      {"control_tls", status.control_tls ? json::value(*status.control_tls) : json::value()},
      {"throughput", view_throughput(status.rates)},
      {"verdict", view_verdict(status, features, flows.bytes_so_far())},
      {"process", view(status.confinement)},
      {"features", view(features)},
      {"preset", preset.empty() ? json::value() : json::value(preset)},
      {"features_until_restart", view_set_by_hand(features, configured)},
      {"links", std::move(links)},
      {"flows",
       {{"live", flows.live().size()},
        {"limit", status.flows_limit},
        {"started", totals.started},
        {"ended", totals.ended},
        {"reset", totals.reset},
        {"reset_by", by_party(totals.reset_by)},
        {"bytes", view(flows.bytes_so_far())},
        {"live_by_reason", by_reason(totals.live_by_reason)},
        {"by_reason", by_reason(totals.by_reason)}}},
      {"ports", view_ports(flows)},
      {"modules", view_modules(flows)},
      {"connections_ahead",
       {{"open", status.connections_ahead},
        {"made", status.connections_ahead_so_far.made},
        {"used", status.connections_ahead_so_far.used},
        {"replaced", status.connections_ahead_so_far.replaced},
        {"unused", status.connections_ahead_so_far.unused},
        {"lost", status.connections_ahead_so_far.lost}}},
      {"handshakes", {{"now", status.handshakes}, {"limit", status.handshakes_limit}}},
      {"lost_writes", view_lost_writes(status)},
      {"strangers", {{"refused", by_refusal(status.strangers_refused)}}},
      {"memory",
       {{"bytes", status.memory_bytes},
        {"limit_bytes", status.memory_limit_bytes},
        {"is_short", status.memory_short},
        {"module_bytes", status.module_bytes},
        {"modules_short", status.module_memory_short},
        {"ahead_bytes", status.ahead_bytes},
        {"parts", view_memory(status.memory_parts)}}},
      {"dictionaries", {{"bytes", status.dictionary_bytes}, {"limit_bytes", status.dictionary_limit_bytes}}},
      {"disk_dictionary", view(status.disk)},
      {"disk_objects", view(status.objects)},
      {"exports", view_exports(status)},
      {"intercept",
       {{"state", to_text(status.intercept)},
        {"error", text_or_null(status.intercept_error)},
        {"bypassed", view_bypassed(status)}}},
      {"fail_closed",
       {{"state", to_text(status.fail_closed)}, {"error", text_or_null(status.fail_closed_error)}}}};
}

std::string_view to_text(InterceptState state) {
  switch (state) {
    case InterceptState::not_configured:
      return "not_configured";
    case InterceptState::up:
      return "up";
    case InterceptState::down:
      return "down";
  }
  return "";
}

std::string_view to_text(FailClosed state) {
  switch (state) {
    case FailClosed::not_configured:
      return "not_configured";
    case FailClosed::enforced:
      return "enforced";
    case FailClosed::lifted:
      return "lifted";
    case FailClosed::missing:
      return "missing";
  }
  return "";
}

std::string_view to_text(link::UdpState state) {
  switch (state) {
    case link::UdpState::none:
      return "none";
    case link::UdpState::probing:
      return "probing";
    case link::UdpState::up:
      return "up";
    case link::UdpState::failed:
      return "failed";
  }
  return "";
}

std::string_view to_text(link::LinkState state) {
  switch (state) {
    case link::LinkState::never_up:
      return "never_up";
    case link::LinkState::up:
      return "up";
    case link::LinkState::silent:
      return "silent";
    case link::LinkState::down:
      return "down";
  }
  return "";
}

}  // namespace longhaul::control
