// SPDX-License-Identifier: Apache-2.0
// A link as JSON: its state, its UDP carrier and its data reduction. Other views are in views.cc.
#include <boost/json/array.hpp>

#include "proxy/control/json_values.h"
#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

namespace json = boost::json;

json::value view(const link::UdpStatus& udp) {
  if (udp.state == link::UdpState::none) return nullptr;
  return {{"state", to_text(udp.state)},
          {"remote_address", text_or_null(udp.remote_address)},
          {"rtt_ms", rtt_or_null(udp.smoothed_rtt)},
          {"datagram_bytes", number_or_null(udp.datagram_bytes)},
          {"pacing_rate_bits", number_or_null(udp.pacing_rate_bits)},
          {"delivery_rate_bits", number_or_null(udp.delivery_rate_bits)},
          {"rate",
           {{"law", udp.rate_law},
            {"phase", udp.rate_phase},
            {"line_bits", number_or_null(udp.line_rate_bits)},
            {"base_rtt_ms", rtt_or_null(udp.base_rtt)},
            {"queue_ms", milliseconds(udp.queue)},
            {"competes", udp.competes},
            {"policed", udp.policed}}},
          {"erasure_rate", udp.erasure_rate},
          {"packets_sent", udp.packets_sent},
          {"packets_received", udp.packets_received},
          {"packets_lost", udp.packets_lost},
          {"spurious_losses", udp.spurious_losses},
          {"packets_dropped", udp.packets_dropped},
          {"bytes_sent", udp.bytes_sent},
          {"bytes_received", udp.bytes_received},
          {"repairs_sent", udp.repairs_sent},
          {"repairs_received", udp.repairs_received},
          {"symbols_recovered", udp.symbols_recovered},
          {"repairs_wasted", udp.repairs_wasted},
          {"repairs_late", udp.repairs_late},
          {"fallbacks", udp.fallbacks},
          {"segments_in_kernel", udp.segments_in_kernel},
          {"drops_bursts", udp.drops_bursts},
          {"unanswered", udp.unanswered},
          {"timer_lateness_ms", milliseconds(udp.timer_lateness)},
          {"worst_timer_lateness_ms", milliseconds(udp.worst_timer_lateness)}};
}

std::string_view role_text(link::PathRole role) {
  switch (role) {
    case link::PathRole::none:
      return "none";
    case link::PathRole::standby:
      return "standby";
    case link::PathRole::carries:
      return "carries";
    case link::PathRole::helps:
      return "helps";
  }
  return "";
}

json::array view_paths(const std::vector<link::PathStatus>& paths) {
  json::array list;
  for (const link::PathStatus& path : paths)
    list.push_back({{"name", path.name},
                    {"role", role_text(path.role)},
                    {"reason", text_or_null(path.reason)},
                    {"cost", path.cost},
                    {"state", to_text(path.udp.state)},
                    {"remote_address", text_or_null(path.udp.remote_address)},
                    {"rtt_ms", rtt_or_null(path.udp.smoothed_rtt)},
                    {"queue_ms", milliseconds(path.udp.queue)},
                    {"pacing_rate_bits", number_or_null(path.udp.pacing_rate_bits)},
                    {"erasure_rate", path.udp.erasure_rate},
                    {"packets_sent", path.udp.packets_sent},
                    {"packets_lost", path.udp.packets_lost},
                    {"spurious_losses", path.udp.spurious_losses},
                    {"bytes_sent", path.udp.bytes_sent},
                    {"bytes_received", path.udp.bytes_received}});
  return list;
}

json::object view_stages(const reduction::BlockFigures& figures) {
  return {{"plain", figures.plain_bytes},
          {"deduped", figures.after_dedup_bytes},
          {"encoded", figures.encoded_bytes}};
}

json::object view(const reduction::BlockFigures& figures) {
  auto object = view_stages(figures);
  object["copies"] = figures.copies;
  object["copied"] = figures.copied_bytes;
  object["from_disk"] = figures.disk_bytes;
  return object;
}

// Counts by upper bound of the length; null for longer ones.
json::array view_hits(const reduction::EncoderCounters& encoder) {
  json::array hits;
  for (std::size_t i = 0; i < encoder.hits.size(); ++i)
    hits.push_back(json::object{
        {"below", i < reduction::kHitLengthBounds.size() ? json::value(reduction::kHitLengthBounds[i])
                                                         : json::value()},
        {"copies", encoder.hits[i]}});
  return hits;
}

json::value view_reduction(const link::LinkStatus& link) {
  const auto& out = link.reduction.encoder;
  const auto& in = link.reduction.decoder;
  if (!link.reduces && out.blocks + in.blocks == 0) return nullptr;
  return {{"active", link.reduces},
          {"common_segments", link.reduction.common_segments},
          {"out",
           {{"blocks", out.blocks},
            {"bytes", view(out.bytes)},
            {"hits", view_hits(out)},
            {"compressed_bytes", out.compressed_bytes},
            {"zstd_level", out.zstd_level},
            {"zstd_relief", out.zstd_relief},
            {"passed_bytes", out.passed_bytes},
            {"opened_bytes", out.opened_bytes},
            {"incompressible_blocks", out.incompressible_blocks},
            {"horizon_stalls", out.horizon_stalls},
            {"needs", out.needs},
            {"mismatches", out.mismatches},
            {"dropped", out.gone},
            {"restarts", out.restarts},
            {"loaded_bytes", out.loaded_bytes},
            {"dictionary_bytes", out.ring_bytes},
            {"dictionary_filled_bytes", out.ring_filled_bytes},
            {"unanswered_bytes", out.unanswered_bytes}}},
          {"in",
           {{"blocks", in.blocks},
            {"bytes", view_stages(in.bytes)},
            {"needs", in.needs},
            {"mismatches", in.mismatches},
            {"recovered", in.recovered},
            {"failed", in.failed},
            {"loaded_bytes", in.loaded_bytes},
            {"segments_refused", in.segments_refused},
            {"dictionary_bytes", in.ring_bytes},
            {"dictionary_filled_bytes", in.ring_filled_bytes}}}};
}

}  // namespace

json::object view(const link::BlockCounters& blocks) {
  const auto direction = [](const link::BlockCounters::Direction& counted) {
    return json::object{{"blocks", counted.blocks},
                        {"plain", counted.plain},
                        {"deduped", counted.deduped},
                        {"encoded", counted.encoded}};
  };
  return {{"out", direction(blocks.out)}, {"in", direction(blocks.in)}};
}

json::object view(const link::LinkStatus& link) {
  json::array unlike;
  for (const link::UnlikeModule& module : link.unlike_modules)
    unlike.push_back({{"module", module.name}, {"version", module.here}, {"peer_version", number_or_null(module.there)}});
  return {{"peer", link.peer},
          {"state", to_text(link.state)},
          {"state_age_s", link.state_age.count()},
          {"carrier", text_or_null(link.carrier)},
          {"remote_address", text_or_null(link.remote_address)},
          {"last_error", text_or_null(link.last_error)},
          {"rtt_ms", rtt_or_null(link.smoothed_rtt)},
          {"streams", link.streams},
          {"bytes_sent", link.bytes_sent},
          {"bytes_received", link.bytes_received},
          {"delivery_rate_bits", number_or_null(link.delivery_rate_bits)},
          {"credit_granted", link.credit_granted},
          {"bytes_retained", link.bytes_retained},
          {"carriers_attached", link.carriers_attached},
          {"udp", view(link.udp)},
          {"paths", view_paths(link.paths)},
          {"unlike_modules", std::move(unlike)},
          {"reduction", view_reduction(link)}};
}

}  // namespace longhaul::control
