// SPDX-License-Identifier: Apache-2.0
// The runs: b sends, a receives, as in a download.
#include "tests/bench/simulated/transfer.h"

#include "tests/bench/simulated/simulation.h"
#include "tests/proxy/link/lock_step.h"

namespace longhaul::bench {
namespace {

std::uint64_t line_bits(const Run& run) { return run.line.b_to_a.link.rate_bits; }
double line_bytes_per_second(const Run& run) { return static_cast<double>(line_bits(run)) / 8; }
Duration round_trip(const Run& run) { return run.line.a_to_b.link.delay + run.line.b_to_a.link.delay; }

// What another carrier found out on the same line.
std::optional<link::udp::PathMemory> learn(Run run) {
  run.seed += 1'000;
  Simulation first({.seed = run.seed, .line = run.line});
  first.come_up();
  first.flows.start(0, kEndless);
  first.pair.run_for(std::max<Duration>(5s, 20 * round_trip(run)));
  return first.pair.b.carrier.rate().path_memory();
}

UdpPairOptions options_for(const Run& run) {
  // What a few round trips of the line hold, and not less than a daemon's usual share.
  const auto memory = std::max<std::uint64_t>(
      256 << 20, static_cast<std::uint64_t>(line_bytes_per_second(run) * in_seconds(round_trip(run)) * 8));
  UdpPairOptions options{
      .seed = run.seed, .line = run.line, .credit_bytes = memory, .retained_bytes = memory};
  options.features.fec = run.fec;
  if (run.knows == Knows::rate) options.rate_bits = run.configured_bits ? run.configured_bits : line_bits(run);
  if (run.knows == Knows::path) options.path = learn(run);
  return options;
}

// A flow's own rule says what is repaired ahead of loss.
link::OpenRequest request_for(const Run& run) {
  link::OpenRequest request = FlowsOn<UdpPair>::simple_request();
  request.features.fec = run.fec;
  return request;
}

// As a wireless link does, or a host that forwards packets and has something else to do.
void let_stand_still(const Run& run, simulator::Network& network, simulator::Line& line) {
  if (run.stands == Duration{0}) return;
  simulator::LineConfig still = run.line;
  for (auto* direction : {&still.a_to_b, &still.b_to_a}) direction->link.rate_bits = 1000;
  const auto change = [&line](const simulator::LineConfig& to) {
    line.a_to_b().change(to.a_to_b);
    line.b_to_a().change(to.b_to_a);
  };
  const Duration in_all = run.warm_up + run.time;
  for (Duration at = run.moves; at < in_all; at += run.moves + run.stands) {
    network.after(at, [=] { change(still); });
    network.after(at + run.stands, [=, usual = run.line] { change(usual); });
  }
}

}  // namespace

BulkResult bulk(const Run& run) {
  const auto started = std::chrono::steady_clock::now();
  Simulation two(options_for(run));
  two.come_up();
  for (unsigned i = 0; i < run.streams; ++i) two.flows.start(0, kEndless, request_for(run));
  let_stand_still(run, two.pair.network(), two.pair.line);
  two.pair.run_for(run.warm_up);
  simulator::Distribution queue;
  // In time by the line's own rate: where it stands still for a moment its present one is next to nothing.
  const double byte_ms = 8e3 / static_cast<double>(run.line.b_to_a.link.rate_bits);
  two.pair.network().every(
      1ms, [&, byte_ms] { queue.add(static_cast<double>(two.pair.line.b_to_a().queued_bytes()) * byte_ms); });
  two.pair.line.b_to_a().reset_counters();
  const std::uint64_t read = delivered(two), sent = two.pair.node_b.bytes_sent();
  const std::uint64_t repairs = two.pair.b.carrier.counters().repairs_sent;
  two.pair.run_for(run.time);
  two.check();
  const auto line = two.pair.line.b_to_a().counters();
  const double got = static_cast<double>(delivered(two) - read);
  return {.goodput_bits = got * 8 / in_seconds(run.time),
          .rtt_ms = in_seconds(two.pair.b.carrier.rtt().smoothed()) * 1e3,
          .queue_ms_median = queue.percentile(50),
          .queue_ms_p99 = queue.percentile(99),
          .sent_per_byte = static_cast<double>(two.pair.node_b.bytes_sent() - sent) / got,
          .lost_share = static_cast<double>(line.link.lost + line.link.dropped + line.policed) /
                        static_cast<double>(line.link.packets_in + line.policed),
          .repairs = two.pair.b.carrier.counters().repairs_sent - repairs,
          .wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count()};
}

double download_seconds(const Run& run, std::uint64_t bytes) {
  Simulation two(options_for(run));
  two.come_up();
  two.pair.run_for(2s);
  const TimePoint start = two.pair.now();
  Flow& flow = two.flows.start(0, bytes, request_for(run));
  TimePoint last = start;
  flow.client_reads.on_read = [&] { last = two.pair.now(); };
  if (!two.pair.run_until([&] { return flow.client_reads.read == bytes; }, 3600s))
    Simulation::fail("a download did not end");
  two.check();
  return in_seconds(last - start);
}

double blocks_seconds(const Run& run, std::uint64_t block_bytes, unsigned blocks) {
  Simulation two(options_for(run));
  two.come_up();
  Flow& flow = two.flows.start_open(request_for(run));
  two.pair.run_for(2s);
  const auto took = read_in_lock_step(two.pair, flow, block_bytes, blocks, run.line.a_to_b.link.delay, 3600s);
  if (!took) Simulation::fail("the blocks did not come");
  two.check();
  return in_seconds(*took);
}

MessageResult messages(const Run& run, bool beside_bulk) {
  constexpr std::uint64_t kMessage = 200;
  Simulation two(options_for(run));
  two.come_up();
  if (beside_bulk) two.flows.start(0, kEndless, request_for(run));
  Flow& flow = two.flows.start_open(request_for(run));
  MessageResult result;
  std::deque<TimePoint> written;  // those that were not read
  std::uint64_t read = 0;
  const TimePoint from = two.pair.now() + run.warm_up;
  flow.client_reads.on_read = [&] {
    for (; read + kMessage <= flow.client_reads.read; read += kMessage) {
      if (written.front() >= from) result.delay_ms.add(in_seconds(two.pair.now() - written.front()) * 1e3);
      written.pop_front();
    }
  };
  two.pair.network().every(20ms, [&] {
    link::Stream* stream = two.pair.b.session.find(flow.id);
    if (!stream || !stream->begun()) return;
    flow.server_writes.total += kMessage;
    written.push_back(two.pair.now());
    flow.server_writes.pump(*stream);
    two.pair.node_b.wake();
  });
  two.pair.run_for(run.warm_up);
  const std::uint64_t before = delivered(two);
  two.pair.run_for(run.time);
  two.check();
  result.bulk_bits = static_cast<double>(delivered(two) - before) * 8 / in_seconds(run.time);
  return result;
}

ShareResult two_pairs(const Run& run) {
  simulator::Network network(run.seed);
  simulator::Line& line = network.add_line(run.line);
  UdpPairOptions options = options_for(run);
  options.host = 1;
  Simulation first(options, network, line);
  first.come_up();
  first.flows.start(0, kEndless, request_for(run));
  first.pair.run_for(5s);
  options.host = 11;
  Simulation second(options, network, line);
  second.come_up();
  second.flows.start(0, kEndless, request_for(run));
  second.pair.run_for(run.warm_up);
  const std::uint64_t read_first = delivered(first), read_second = delivered(second);
  network.run_for(run.time);
  first.check();
  second.check();
  return {static_cast<double>(delivered(first) - read_first) * 8 / in_seconds(run.time),
          static_cast<double>(delivered(second) - read_second) * 8 / in_seconds(run.time)};
}

ShareResult beside_cubic(const Run& run) {
  simulator::Network network(run.seed);
  simulator::Line& line = network.add_line(run.line);
  Cubic cubic(network, line);
  network.run_for(10s);
  Simulation two(options_for(run), network, line);
  two.come_up();
  two.flows.start(0, kEndless, request_for(run));
  two.pair.run_for(run.warm_up);
  const TimePoint from = network.now();
  const std::uint64_t before = delivered(two);
  network.run_for(run.time);
  two.check();
  return {static_cast<double>(delivered(two) - before) * 8 / in_seconds(run.time),
          cubic.receiver.meter().bits_per_second(from, network.now())};
}

double cubic_download_seconds(const Run& run, std::uint64_t bytes) {
  simulator::Network network(run.seed);
  const std::uint64_t segments = (bytes + 1447) / 1448;
  Cubic cubic(network, network.add_line(run.line), segments);
  const TimePoint start = network.now();
  while (cubic.receiver.meter().total() < segments * 1448) network.run_for(100us);
  return in_seconds(network.now() - start + run.line.a_to_b.link.delay);  // with the request
}

double cubic_alone(const Run& run) {
  simulator::Network network(run.seed);
  simulator::Line& line = network.add_line(run.line);
  Cubic cubic(network, line);
  let_stand_still(run, network, line);
  network.run_for(run.warm_up);
  const TimePoint from = network.now();
  network.run_for(run.time);
  return cubic.receiver.meter().bits_per_second(from, network.now());
}

}  // namespace longhaul::bench
