// SPDX-License-Identifier: Apache-2.0
// Turns snapshots into Prometheus metric families; prometheus-cpp serializes them.
#include "proxy/control/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <deque>
#include <initializer_list>
#include <locale>
#include <sstream>
#include <utility>

#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Families {
 public:
  class Family {
   public:
    explicit Family(MetricFamily& family) : family_(family) {}
    Family& sample(Labels labels, double value) {
      auto& metric = family_.metric.emplace_back();
      for (const auto& [name, text] : labels) metric.label.push_back({std::string(name), std::string(text)});
      (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
      return *this;
    }
    Family& sample(Labels labels, std::uint64_t value) { return sample(labels, static_cast<double>(value)); }

   private:
    MetricFamily& family_;
  };

  Family gauge(std::string name, std::string help) {
    return add(std::move(name), std::move(help), MetricType::Gauge);
  }
  Family counter(std::string name, std::string help) {
    return add(std::move(name), std::move(help), MetricType::Counter);
  }
  std::string text() const {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    prometheus::TextSerializer{}.Serialize(out, {families_.begin(), families_.end()});
    return std::move(out).str();
  }

 private:
  Family add(std::string name, std::string help, MetricType type) {
    return Family{
        families_.emplace_back(MetricFamily{"longhaul_" + std::move(name), std::move(help), type, {}})};
  }
  std::deque<MetricFamily> families_;  // a Family refers to one while others are added
};

void add_flows(Families& families, const Status& status, const flows::FlowTable& flows) {
  const auto& totals = flows.totals();
  auto live = families.gauge("flows_live", "Live flows, by reason code.");
  auto given = families.counter("flows_reason_total", "Number of times a flow was given this reason code.");
  for (const flows::Reason reason : flows::all_reasons()) {
    live.sample({{"reason", reason->code}}, flows::count(totals.live_by_reason, reason));
    given.sample({{"reason", reason->code}}, flows::count(totals.by_reason, reason));
  }
  families.gauge("flows_limit", "Maximum number of live flows ([limits] flows).").sample({}, status.flows_limit);
  families.counter("flows_started_total", "Flows started.").sample({}, totals.started);
  families.counter("flows_ended_total", "Flows ended, by how they ended.")
      .sample({{"end", "closed"}}, totals.ended - totals.reset)
      .sample({{"end", "reset"}}, totals.reset);
  const auto bytes = flows.bytes_so_far();
  families
      .counter("flow_bytes_total",
               "Bytes of flows: application bytes on the LAN side, link frames before encryption on the WAN side.")
      .sample({{"side", "lan"}, {"direction", "in"}}, bytes.lan_in)
      .sample({{"side", "lan"}, {"direction", "out"}}, bytes.lan_out)
      .sample({{"side", "wan"}, {"direction", "in"}}, bytes.wan_in)
      .sample({{"side", "wan"}, {"direction", "out"}}, bytes.wan_out);
}

void add_links(Families& families, const Status& status) {
  using link::LinkState;
  auto state = families.gauge("link_state", "1 for the current state of the link, otherwise 0.");
  auto rtt = families.gauge("link_rtt_seconds", "Smoothed round-trip time of the link.");
  auto streams = families.gauge("link_streams", "Live streams on the link.");
  auto bytes =
      families.counter("link_bytes_total", "Bytes on TCP and UDP between the peers, with TLS and packet headers.");
  auto carrier = families.gauge("link_carrier", "1 for the transport (tcp or udp) that carries the data, otherwise 0.");
  auto rate = families.gauge("link_delivery_rate_bits", "Measured delivery rate in bits per second.");
  auto credit = families.gauge("link_credit_bytes", "Bytes that the peer may still send (receive credit).");
  auto retained =
      families.gauge("link_retained_bytes", "Bytes sent and not yet acknowledged by the peer.");
  auto carriers = families.counter("link_carriers_total", "Transport connections (tcp and udp) used by the link.");
  for (const auto& link : status.links) {
    for (const auto each : {LinkState::never_up, LinkState::up, LinkState::silent, LinkState::down})
      state.sample({{"peer", link.peer}, {"state", to_text(each)}}, link.state == each ? 1.0 : 0.0);
    rtt.sample({{"peer", link.peer}}, std::chrono::duration<double>(link.smoothed_rtt).count());
    for (const auto each : {"tcp", "udp"})
      carrier.sample({{"peer", link.peer}, {"carrier", each}}, link.carrier == each ? 1.0 : 0.0);
    streams.sample({{"peer", link.peer}}, link.streams);
    bytes.sample({{"peer", link.peer}, {"direction", "sent"}}, link.bytes_sent);
    bytes.sample({{"peer", link.peer}, {"direction", "received"}}, link.bytes_received);
    rate.sample({{"peer", link.peer}}, link.delivery_rate_bits);
    credit.sample({{"peer", link.peer}}, link.credit_granted);
    retained.sample({{"peer", link.peer}}, link.bytes_retained);
    carriers.sample({{"peer", link.peer}}, link.carriers_attached);
  }
}

void add_ports(Families& families, const flows::FlowTable& flows) {
  auto bytes = families.counter("port_bytes_total",
                                "Bytes of flows by destination port, as in longhaul_flow_bytes_total.");
  auto blocks = families.counter(
      "port_block_bytes_total",
      "Bytes of flows by destination port: before reduction (plain), after deduplication (deduped) and after "
      "compression (encoded).");
  for (const auto& [number, totals] : flows.by_port_so_far()) {
    const std::string port = number == 0 ? "other" : std::to_string(number);
    bytes.sample({{"port", port}, {"side", "lan"}, {"direction", "in"}}, totals.bytes.lan_in)
        .sample({{"port", port}, {"side", "lan"}, {"direction", "out"}}, totals.bytes.lan_out)
        .sample({{"port", port}, {"side", "wan"}, {"direction", "in"}}, totals.bytes.wan_in)
        .sample({{"port", port}, {"side", "wan"}, {"direction", "out"}}, totals.bytes.wan_out);
    for (const auto& [direction, counted] :
         {std::pair("out", totals.blocks.out), std::pair("in", totals.blocks.in)})
      blocks.sample({{"port", port}, {"direction", direction}, {"stage", "plain"}}, counted.plain)
          .sample({{"port", port}, {"direction", direction}, {"stage", "deduped"}}, counted.deduped)
          .sample({{"port", port}, {"direction", direction}, {"stage", "encoded"}}, counted.encoded);
  }
}

void add_modules(Families& families, const flows::FlowTable& flows) {
  const auto totals = flows.by_module_so_far();
  auto live = families.gauge("module_flows_live", "Live flows with an application module.");
  auto started = families.counter("module_flows_total", "Flows with an application module.");
  for (const auto& [of, module] : totals) {
    live.sample({{"peer", of.first}, {"module", of.second}}, module.live);
    started.sample({{"peer", of.first}, {"module", of.second}}, module.flows);
  }
  for (const auto& counter : modules::kCounterNames) {
    auto family = families.counter("module_" + std::string(counter.name) + "_total",
                                   std::string(counter.help) + ", counted at this site.");
    for (const auto& [of, module] : totals)
      family.sample({{"peer", of.first}, {"module", of.second}}, module.counters.*counter.value);
  }
}

void add_reduction(Families& families, const Status& status) {
  auto blocks = families.counter("reduction_blocks_total", "Blocks encoded (out) and decoded (in).");
  auto bytes = families.counter(
      "reduction_bytes_total",
      "Bytes of data reduction by stage: plain (before), deduped (after deduplication), encoded (after "
      "compression); copied and from_disk: plain bytes found in the memory and disk dictionaries; passed: "
      "sent unreduced; opened: in blocks with deflate data that was recompressed; loaded: read from the disk "
      "dictionary.");
  auto copies = families.counter("reduction_copies_total", "Repeats found by deduplication, by length.");
  auto events = families.counter("reduction_events_total", "Unusual events of data reduction.");
  auto level = families.gauge("zstd_level", "Current zstd compression level.");
  auto relief =
      families.gauge("zstd_relief", "Levels by which zstd compression is lowered because the CPU is busy.");
  auto common = families.gauge("disk_dictionary_common_segments", "Segments in the disk dictionaries of both sites.");
  auto dictionary = families.gauge("dictionary_bytes", "The dictionary in memory: its size and its contents.");
  for (const auto& link : status.links) {
    const auto& peer = link.peer;
    const auto& out = link.reduction.encoder;
    const auto& in = link.reduction.decoder;
    blocks.sample({{"peer", peer}, {"direction", "out"}}, out.blocks)
        .sample({{"peer", peer}, {"direction", "in"}}, in.blocks);
    const auto stages = [&](const char* direction, const reduction::BlockFigures& figures) {
      bytes.sample({{"peer", peer}, {"direction", direction}, {"stage", "plain"}}, figures.plain_bytes)
          .sample({{"peer", peer}, {"direction", direction}, {"stage", "deduped"}}, figures.after_dedup_bytes)
          .sample({{"peer", peer}, {"direction", direction}, {"stage", "encoded"}}, figures.encoded_bytes);
    };
    stages("out", out.bytes);
    stages("in", in.bytes);
    bytes.sample({{"peer", peer}, {"direction", "out"}, {"stage", "copied"}}, out.bytes.copied_bytes)
        .sample({{"peer", peer}, {"direction", "out"}, {"stage", "from_disk"}}, out.bytes.disk_bytes)
        .sample({{"peer", peer}, {"direction", "out"}, {"stage", "passed"}}, out.passed_bytes)
        .sample({{"peer", peer}, {"direction", "out"}, {"stage", "opened"}}, out.opened_bytes)
        .sample({{"peer", peer}, {"direction", "out"}, {"stage", "loaded"}}, out.loaded_bytes)
        .sample({{"peer", peer}, {"direction", "in"}, {"stage", "loaded"}}, in.loaded_bytes);
    for (std::size_t i = 0; i < out.hits.size(); ++i) {
      const std::string below =
          i < reduction::kHitLengthBounds.size() ? std::to_string(reduction::kHitLengthBounds[i]) : "inf";
      copies.sample({{"peer", peer}, {"below", below}}, out.hits[i]);
    }
    level.sample({{"peer", peer}}, static_cast<double>(out.zstd_level));
    relief.sample({{"peer", peer}}, out.zstd_relief);
    common.sample({{"peer", peer}}, link.reduction.common_segments);
    const auto event = [&](const char* direction, const char* name, std::uint64_t count) {
      events.sample({{"peer", peer}, {"direction", direction}, {"event", name}}, count);
    };
    event("out", "incompressible", out.incompressible_blocks);
    event("out", "horizon_stall", out.horizon_stalls);
    event("out", "need", out.needs);
    event("out", "mismatch", out.mismatches);
    event("out", "gone", out.gone);
    event("out", "restart", out.restarts);
    event("in", "need", in.needs);
    event("in", "mismatch", in.mismatches);
    event("in", "recovered", in.recovered);
    event("in", "failed", in.failed);
    event("in", "segment_refused", in.segments_refused);
    dictionary.sample({{"peer", peer}, {"direction", "out"}, {"kind", "size"}}, out.ring_bytes)
        .sample({{"peer", peer}, {"direction", "out"}, {"kind", "filled"}}, out.ring_filled_bytes)
        .sample({{"peer", peer}, {"direction", "out"}, {"kind", "unanswered"}}, out.unanswered_bytes)
        .sample({{"peer", peer}, {"direction", "in"}, {"kind", "size"}}, in.ring_bytes)
        .sample({{"peer", peer}, {"direction", "in"}, {"kind", "filled"}}, in.ring_filled_bytes);
  }
}

void add_disk(Families& families, const Status& status) {
  if (!status.disk) return;
  const auto& disk = *status.disk;
  families.gauge("disk_dictionary_ready", "1 when the directory of the disk dictionary has been read.")
      .sample({}, disk.ready ? 1.0 : 0.0);
  families.gauge("disk_dictionary_segments", "Segments in the disk dictionary.").sample({}, disk.segments);
  families.gauge("disk_dictionary_bytes", "Bytes of the disk dictionary: stored, limit, queued for writing, index in memory.")
      .sample({{"kind", "stored"}}, disk.disk_bytes)
      .sample({{"kind", "limit"}}, disk.cap_bytes)
      .sample({{"kind", "queued"}}, disk.queued_bytes)
      .sample({{"kind", "index"}}, disk.memory_bytes);
  families.counter("disk_dictionary_segments_total", "Segments of the disk dictionary, by event.")
      .sample({{"event", "put"}}, disk.put)
      .sample({{"event", "refused"}}, disk.refused)
      .sample({{"event", "failed"}}, disk.failed)
      .sample({{"event", "wrong_digest"}}, disk.wrong_digest)
      .sample({{"event", "made_room"}}, disk.made_room)
      .sample({{"event", "damaged"}}, disk.damaged)
      .sample({{"event", "lost"}}, disk.lost);
  families.counter("disk_dictionary_moved_bytes_total", "Bytes written to, refused by and read from the disk dictionary.")
      .sample({{"event", "put"}}, disk.put_bytes)
      .sample({{"event", "refused"}}, disk.refused_bytes)
      .sample({{"event", "loaded"}}, disk.load_bytes);
  families.counter("disk_dictionary_loads_total", "Reads of segments from disk, by outcome.")
      .sample({{"outcome", "asked"}}, disk.loads)
      .sample({{"outcome", "failed"}}, disk.loads_failed);
  families.counter("disk_dictionary_lookups_total", "Fingerprint lookups in the disk dictionary, and hits.")
      .sample({{"kind", "asked"}}, disk.lookups)
      .sample({{"kind", "hit"}}, disk.hits);
}

void add_udp(Families& families, const Status& status) {
  using link::UdpState;
  auto state = families.gauge("udp_state", "1 for the current state of UDP on the link, otherwise 0.");
  auto rate = families.gauge("udp_pacing_rate_bits", "Pacing rate of UDP, in bits per second of IP packets.");
  auto size = families.gauge("udp_datagram_bytes", "Largest UDP payload known to pass the path.");
  auto packets =
      families.counter("udp_packets_total",
                       "UDP packets: sent, received, lost, spurious (declared lost and then acknowledged), dropped (received "
                       "and discarded).");
  auto bytes = families.counter("udp_bytes_total", "Bytes of UDP payload.");
  auto repairs = families.counter("udp_repairs_total",
                                  "Repair packets of forward error correction: sent, received, wasted (nothing to repair), late.");
  auto recovered = families.counter("udp_recovered_total", "Lost packets recovered by repair packets.");
  auto fallbacks = families.counter("udp_fallbacks_total", "Fallbacks to TCP because UDP was no longer answered.");
  auto late = families.gauge("udp_timer_lateness_seconds", "Average lateness of the pacing timers.");
  for (const auto& link : status.links) {
    const auto& udp = link.udp;
    const auto& peer = link.peer;
    for (const auto each : {UdpState::none, UdpState::probing, UdpState::up, UdpState::failed})
      state.sample({{"peer", peer}, {"state", to_text(each)}}, udp.state == each ? 1.0 : 0.0);
    rate.sample({{"peer", peer}}, udp.pacing_rate_bits);
    size.sample({{"peer", peer}}, udp.datagram_bytes);
    packets.sample({{"peer", peer}, {"kind", "sent"}}, udp.packets_sent)
        .sample({{"peer", peer}, {"kind", "received"}}, udp.packets_received)
        .sample({{"peer", peer}, {"kind", "lost"}}, udp.packets_lost)
        .sample({{"peer", peer}, {"kind", "spurious"}}, udp.spurious_losses)
        .sample({{"peer", peer}, {"kind", "dropped"}}, udp.packets_dropped);
    bytes.sample({{"peer", peer}, {"direction", "sent"}}, udp.bytes_sent)
        .sample({{"peer", peer}, {"direction", "received"}}, udp.bytes_received);
    repairs.sample({{"peer", peer}, {"kind", "sent"}}, udp.repairs_sent)
        .sample({{"peer", peer}, {"kind", "received"}}, udp.repairs_received)
        .sample({{"peer", peer}, {"kind", "wasted"}}, udp.repairs_wasted)
        .sample({{"peer", peer}, {"kind", "late"}}, udp.repairs_late);
    recovered.sample({{"peer", peer}}, udp.symbols_recovered);
    fallbacks.sample({{"peer", peer}}, udp.fallbacks);
    late.sample({{"peer", peer}}, std::chrono::duration<double>(udp.timer_lateness).count());
  }
  families
      .counter("udp_unknown_datagrams_total",
               "Datagrams to the link's port that belong to no connection and were dropped.")
      .sample({}, status.unknown_datagrams);
}

void add_refusals(Families& families, const Status& status) {
  auto refused = families.counter("strangers_refused_total",
                                   "Connections to the link's port that were not authenticated, by reason.");
  for (const auto& row : link::kRefusalTable)
    refused.sample({{"reason", row.code}}, status.strangers_refused[static_cast<std::size_t>(row.refusal)]);
}

std::string of_module(const modules::Listed& module, std::string_view name) {
  return std::string(module.descriptor.name) + '_' + std::string(name);
}

void add_losses(Families& families, const modules::Listed& module) {
  if (!module.instance->losses()) return;
  const auto counts = module.instance->losses()->counts();
  auto lost = families.counter(of_module(module, "promises_lost_total"),
                               "Files with acknowledged writes that were lost or may be lost, by cause.");
  for (const auto& [cause, files] : counts.lost) lost.sample({{"cause", cause}}, files);
  auto reported = families.counter(of_module(module, "promises_reported_total"),
                                   "Losses of acknowledged writes reported to a client, by how.");
  for (const auto& [how, losses] : counts.reported) reported.sample({{"how", how}}, losses);
  families
      .counter(of_module(module, "promises_forgotten_total"),
               "Losses of acknowledged writes dropped for lack of room and never reported.")
      .sample({}, counts.forgotten);
  families
      .gauge(of_module(module, "lost_files"), "Files with lost writes whose client has not been notified yet.")
      .sample({}, counts.waiting);
}

}  // namespace

std::string metrics_text(const Status& status, const flows::FlowTable& flows, const ApiCounters& api) {
  Families families;
  families.gauge("info", "Always 1; the labels identify the daemon.")
      .sample({{"site", status.site}, {"version", status.version}}, 1.0);
  families.gauge("uptime_seconds", "Time since the daemon started.")
      .sample({}, std::chrono::duration<double>(status.uptime).count());
  add_flows(families, status, flows);
  add_links(families, status);
  add_udp(families, status);
  add_reduction(families, status);
  add_disk(families, status);
  add_ports(families, flows);
  add_modules(families, flows);
  families.gauge("handshakes", "TLS handshakes in progress.").sample({}, status.handshakes);
  families.gauge("handshakes_limit", "Maximum number of TLS handshakes in progress ([limits] handshakes).").sample({}, status.handshakes_limit);
  add_refusals(families, status);
  for (const modules::Listed& module : status.modules) add_losses(families, module);
  auto part_bytes = families.gauge("memory_part_bytes", "Memory used by each part.");
  auto part_limit = families.gauge("memory_part_limit_bytes", "Memory limit of each part.");
  for (const MemoryPart& part : status.memory_parts) {
    part_bytes.sample({{"part", std::string(part.name)}}, part.bytes);
    part_limit.sample({{"part", std::string(part.name)}}, part.limit_bytes);
  }
  families.gauge("memory_bytes", "Memory used by all parts together.").sample({}, status.memory_bytes);
  families.gauge("memory_limit_bytes", "Limit of all memory, with a reserve ([limits] memory).")
      .sample({}, status.memory_limit_bytes);
  families.gauge("module_memory_bytes", "Memory that application modules use for flows.")
      .sample({}, status.module_bytes);
  families.gauge("memory_short", "1 while the memory limit leaves no room for new flows (flows) or for application modules (modules).")
      .sample({{"of", "flows"}}, status.memory_short ? 1.0 : 0.0)
      .sample({{"of", "modules"}}, status.module_memory_short ? 1.0 : 0.0);
  families.gauge("ahead_bytes", "Memory used for data read ahead of client requests.")
      .sample({}, status.ahead_bytes);
  families.gauge("dictionary_memory_bytes", "Memory used by the dictionaries of all links and by the disk dictionary.")
      .sample({}, status.dictionary_bytes);
  families.gauge("dictionary_memory_limit_bytes", "Memory limit of the dictionaries.")
      .sample({}, status.dictionary_limit_bytes);
  families.gauge("intercept_up", "1 while the packet rules of transparent mode are installed.")
      .sample({}, status.intercept == InterceptState::up ? 1.0 : 0.0);
  auto bypassed = families.counter(
      "bypassed_connections_total", "New connections that bypassed the proxy because of a limit.");
  for (const auto& [limit, connections] : status.bypassed) bypassed.sample({{"limit", limit}}, connections);
  families.gauge("fail_closed", "1 for the current state of the packet rules of fail = closed.")
      .sample({{"state", std::string(to_text(status.fail_closed))}}, 1.0);
  families.gauge("control_connections", "Open connections to the control API.").sample({}, api.connections);
  families.counter("control_connections_total", "Connections to the control API, by outcome.")
      .sample({{"outcome", "accepted"}}, api.accepted)
      .sample({{"outcome", "turned_away"}}, api.turned_away);
  families.counter("control_requests_total", "Requests to the control API, by outcome.")
      .sample({{"outcome", "answered"}}, api.requests - api.refused)
      .sample({{"outcome", "refused"}}, api.refused);
  return families.text();
}

}  // namespace longhaul::control
