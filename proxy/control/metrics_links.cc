// SPDX-License-Identifier: Apache-2.0
// The metrics of links: sessions, the UDP carrier, and data reduction.
#include <chrono>

#include "proxy/control/metrics_parts.h"
#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

template <class Duration>
double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void add_links(Families& families, const Status& status) {
  using link::LinkState;
  auto state = families.gauge("link_state", "1 for the current state of the link, otherwise 0.");
  auto age = families.gauge("link_state_age_seconds", "Time since the link entered its current state.");
  auto rtt = families.gauge("link_rtt_seconds", "Smoothed round-trip time of the link.");
  auto streams = families.gauge("link_streams", "Live streams on the link.");
  auto bytes = families.counter("link_bytes_total",
                                "Bytes on TCP and UDP between the peers, with TLS and packet headers.");
  auto carrier =
      families.gauge("link_carrier", "1 for the transport (tcp or udp) that carries the data, otherwise 0.");
  auto rate = families.gauge("link_delivery_rate_bits", "Measured delivery rate in bits per second.");
  auto credit = families.gauge("link_credit_bytes", "Bytes that the peer may still send (receive credit).");
  auto retained = families.gauge("link_retained_bytes", "Bytes sent and not yet acknowledged by the peer.");
  auto carriers =
      families.counter("link_carriers_total", "TCP connections that carried the link since the start.");
  for (const auto& link : status.links) {
    for (const auto each : {LinkState::never_up, LinkState::up, LinkState::silent, LinkState::down})
      state.sample({{"peer", link.peer}, {"state", to_text(each)}}, link.state == each ? 1.0 : 0.0);
    age.sample({{"peer", link.peer}}, seconds(link.state_age));
    rtt.sample({{"peer", link.peer}}, seconds(link.smoothed_rtt));
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

void add_reduction(Families& families, const Status& status) {
  auto blocks = families.counter("reduction_blocks_total", "Blocks encoded (out) and decoded (in).");
  auto bytes = families.counter(
      "reduction_bytes_total",
      "Bytes of data reduction by stage: plain (before), deduped (after deduplication), encoded (after "
      "compression); copied and from_disk: plain bytes found in the memory and disk dictionaries; passed: "
      "sent unreduced; compressed: given to zstd; opened: in blocks with deflate data that was recompressed; "
      "loaded: read from the disk "
      "dictionary.");
  auto copies = families.counter("reduction_copies_total", "Repeats found by deduplication, by length.");
  auto events = families.counter("reduction_events_total", "Unusual events of data reduction.");
  auto active = families.gauge("reduction_active", "1 while both sides reduce data.");
  auto level = families.gauge("zstd_level", "Current zstd compression level.");
  auto relief =
      families.gauge("zstd_relief", "Levels by which zstd compression is lowered because the CPU is busy.");
  auto common =
      families.gauge("disk_dictionary_common_segments", "Segments in the disk dictionaries of both sites.");
  auto dictionary =
      families.gauge("dictionary_bytes", "The dictionary in memory: its size and its contents.");
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
        .sample({{"peer", peer}, {"direction", "out"}, {"stage", "compressed"}}, out.compressed_bytes)
        .sample({{"peer", peer}, {"direction", "out"}, {"stage", "opened"}}, out.opened_bytes)
        .sample({{"peer", peer}, {"direction", "out"}, {"stage", "loaded"}}, out.loaded_bytes)
        .sample({{"peer", peer}, {"direction", "in"}, {"stage", "loaded"}}, in.loaded_bytes);
    for (std::size_t i = 0; i < out.hits.size(); ++i) {
      const std::string below =
          i < reduction::kHitLengthBounds.size() ? std::to_string(reduction::kHitLengthBounds[i]) : "inf";
      copies.sample({{"peer", peer}, {"below", below}}, out.hits[i]);
    }
    level.sample({{"peer", peer}}, static_cast<double>(out.zstd_level));
    active.sample({{"peer", peer}}, link.reduces ? 1.0 : 0.0);
    relief.sample({{"peer", peer}}, out.zstd_relief);
    common.sample({{"peer", peer}}, link.reduction.common_segments);
    const auto event = [&](const char* direction, const char* name, std::uint64_t count) {
      events.sample({{"peer", peer}, {"direction", direction}, {"event", name}}, count);
    };
    event("out", "incompressible", out.incompressible_blocks);
    event("out", "horizon_stall", out.horizon_stalls);
    event("out", "need", out.needs);
    event("out", "mismatch", out.mismatches);
    event("out", "dropped", out.gone);
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

void add_udp(Families& families, const Status& status) {
  using link::UdpState;
  auto state = families.gauge("udp_state", "1 for the current state of UDP on the link, otherwise 0.");
  auto rate = families.gauge("udp_pacing_rate_bits", "Pacing rate of UDP, in bits per second of IP packets.");
  auto size = families.gauge("udp_datagram_bytes", "Largest UDP payload known to fit the path.");
  auto packets = families.counter(
      "udp_packets_total",
      "UDP packets: sent, received, lost, spurious (declared lost and then acknowledged), dropped (received "
      "and discarded).");
  auto bytes = families.counter("udp_bytes_total", "Bytes of UDP payload.");
  auto repairs = families.counter(
      "udp_repairs_total",
      "Repair packets of forward error correction: sent, received, wasted (nothing to repair), late.");
  auto recovered = families.counter("udp_recovered_total", "Lost packets recovered by repair packets.");
  auto fallbacks = families.counter("udp_fallbacks_total",
                                    "Fallbacks to TCP because UDP packets were no longer acknowledged.");
  auto rtt = families.gauge("udp_rtt_seconds", "Smoothed round-trip time of the UDP path.");
  auto base = families.gauge("udp_base_rtt_seconds", "Round-trip time of the UDP path without a queue.");
  auto queue = families.gauge("udp_queue_seconds", "Time that packets wait in the queue of the line.");
  auto delivered =
      families.gauge("udp_delivery_rate_bits", "Measured delivery rate of UDP in bits per second.");
  auto line = families.gauge("udp_line_rate_bits",
                             "Estimated rate of the line in bits per second; 0: not known yet.");
  auto law =
      families.gauge("udp_rate_law",
                     "1 for the rate law in force: configured (the configured rate), limited (below the "
                     "configured rate, because the line carries less) or measured.");
  auto competes = families.gauge("udp_competes", "1 while other traffic keeps the queue of the line full.");
  auto policed =
      families.gauge("udp_policed", "1 while the line drops packets above its rate without queueing them.");
  auto erasures = families.gauge("udp_erasure_ratio",
                                 "Share of packets lost at random, as estimated for error correction.");
  auto bursts = families.gauge("udp_drops_bursts",
                               "1 while packets are sent one by one because the path drops bursts.");
  auto unanswered =
      families.gauge("udp_unanswered", "1 while no UDP packet was received since the link came up.");
  auto gso = families.gauge("udp_segments_in_kernel", "1 while the kernel segments UDP (GSO).");
  auto worst = families.gauge("udp_worst_timer_lateness_seconds", "Largest lateness of a pacing timer.");
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
    rtt.sample({{"peer", peer}}, seconds(udp.smoothed_rtt));
    base.sample({{"peer", peer}}, seconds(udp.base_rtt));
    queue.sample({{"peer", peer}}, seconds(udp.queue));
    delivered.sample({{"peer", peer}}, udp.delivery_rate_bits);
    line.sample({{"peer", peer}}, udp.line_rate_bits);
    for (const std::string_view each : {"configured", "limited", "measured"})
      law.sample({{"peer", peer}, {"law", each}}, udp.rate_law == each ? 1.0 : 0.0);
    competes.sample({{"peer", peer}}, udp.competes ? 1.0 : 0.0);
    policed.sample({{"peer", peer}}, udp.policed ? 1.0 : 0.0);
    erasures.sample({{"peer", peer}}, udp.erasure_rate);
    bursts.sample({{"peer", peer}}, udp.drops_bursts ? 1.0 : 0.0);
    unanswered.sample({{"peer", peer}}, udp.unanswered ? 1.0 : 0.0);
    gso.sample({{"peer", peer}}, udp.segments_in_kernel ? 1.0 : 0.0);
    worst.sample({{"peer", peer}}, seconds(udp.worst_timer_lateness));
    late.sample({{"peer", peer}}, seconds(udp.timer_lateness));
  }
  families
      .counter("udp_unknown_datagrams_total",
               "Datagrams to the link's port that belonged to no connection and were dropped.")
      .sample({}, status.unknown_datagrams);
}

}  // namespace longhaul::control
