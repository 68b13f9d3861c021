// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/flow_views.h"

#include "proxy/control/json_values.h"
#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

namespace json = boost::json;
using flows::FlowRecord;

std::string endpoint_text(const boost::asio::ip::tcp::endpoint& endpoint) {
  return flows::Destination{{}, endpoint.address(), endpoint.port()}.to_text();
}

// A flow at the far side arrived over the link; the near side's listener does not matter.
std::string_view origin_text(const FlowRecord& flow) {
  if (flow.far_side) return "link";
  switch (flow.origin) {
    case flows::Origin::tproxy:
      return "tproxy";
    case flows::Origin::forward:
      return "forward";
    case flows::Origin::socks:
      return "socks";
  }
  return "";
}

json::value view_module(const FlowRecord& flow) {
  if (!flow.module) return nullptr;
  return {{"name", flow.module->name},
          {"state", flow.module->steps_aside ? "stepped_aside" : "running"},
          {"detail", flow.module->detail},
          {"counters", view_counters(flow.module->counters)}};
}

json::object view_flow(const FlowRecord& flow) {
  return {{"id", flow.id},
          {"client", endpoint_text(flow.client)},
          {"destination", flow.destination.to_text()},
          {"side", flow.far_side ? "far" : "near"},
          {"origin", origin_text(flow)},
          {"peer", text_or_null(flow.peer)},
          {"reason", flow.reason->code},
          {"bytes", view(flow.bytes)},
          {"blocks", view(flow.blocks)},
          {"module", view_module(flow)},
          {"features", view(flow.features)}};
}

std::string_view path_text(Path path) {
  switch (path) {
    case Path::over_link:
      return "over_link";
    case Path::bypasses_link:
      return "bypasses_link";
    case Path::refused:
      return "refused";
    case Path::not_intercepted:
      return "not_intercepted";
    case Path::for_peer:
      return "for_peer";
  }
  return "";
}

}  // namespace

json::object view_counters(const modules::Counters& counters) {
  json::object object;
  for (const auto& counter : modules::kCounterNames) object[counter.name] = counters.*counter.value;
  return object;
}

LinkFacts::LinkFacts(const Status& status) {
  for (const auto& link : status.links) by_peer_.push_back({link.peer, link.carrier, link.smoothed_rtt});
}

const LinkFacts::Facts* LinkFacts::of(std::string_view peer) const {
  for (const auto& facts : by_peer_)
    if (facts.peer == peer) return &facts;
  return nullptr;
}

json::object view(const flows::FlowBytes& bytes) {
  return {{"lan_in", bytes.lan_in},
          {"lan_out", bytes.lan_out},
          {"wan_in", bytes.wan_in},
          {"wan_out", bytes.wan_out}};
}

json::object view(const FlowRecord& flow, const LinkFacts& links, SteadyTime now) {
  auto object = view_flow(flow);
  object["state"] = "live";
  object["age_s"] = std::chrono::duration<double>(now - flow.started).count();
  const auto* link = flow.peer.empty() ? nullptr : links.of(flow.peer);
  object["rtt_ms"] = link ? rtt_or_null(link->rtt) : json::value();
  object["carrier"] = link ? text_or_null(link->carrier) : json::value();
  object["reset_by"] = nullptr;
  return object;
}

json::object view(const flows::FlowTable::Ended& flow) {
  auto object = view_flow(flow.record);
  object["state"] = flow.end == flows::FlowTable::End::reset ? "reset" : "closed";
  object["age_s"] = nullptr;
  object["rtt_ms"] = nullptr;
  object["carrier"] = nullptr;
  const auto* reset = flows::text_of(flow.record.reset_by);
  object["reset_by"] = reset ? json::value(reset->code) : json::value();
  return object;
}

json::object view_reason(flows::Reason reason) {
  return {{"reason", reason->code}, {"sentence", reason->sentence}, {"remedy", reason->remedy}};
}

json::object view_forecast(const flows::Tuple& tuple, const Forecast& forecast) {
  auto object = view_reason(forecast.reason);
  if (!forecast.sentence.empty()) object["sentence"] = forecast.sentence;
  if (!forecast.remedy.empty()) object["remedy"] = forecast.remedy;
  object["tuple"] = flows::to_text(tuple);
  object["path"] = path_text(forecast.path);
  object["peer"] = text_or_null(forecast.peer);
  object["rule"] = forecast.rule ? json::value(*forecast.rule) : json::value();
  object["features"] = view(forecast.features);
  return object;
}

}  // namespace longhaul::control
