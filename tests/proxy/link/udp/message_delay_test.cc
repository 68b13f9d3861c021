// SPDX-License-Identifier: Apache-2.0
// How late small messages are, in order, while bulk runs beside them on a lossy line: with error correction
// and without.
#include <catch2/catch.hpp>

#include "../simulated_flow.h"
#include "simulated_udp_pair.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

struct Delays {
  std::vector<double> milliseconds;
  UdpCounters counters;
  double bulk_mbit = 0;
  double at(double share) {
    std::sort(milliseconds.begin(), milliseconds.end());
    return milliseconds[std::min(milliseconds.size() - 1,
                                 static_cast<std::size_t>(share * static_cast<double>(milliseconds.size())))];
  }
};

constexpr std::size_t kMessage = 200;

Delays message_delays(const UdpPairOptions& options, bool bulk, int messages) {
  UdpPair pair(options);
  REQUIRE(pair.run_until([&] { return pair.up(); }, 3s));
  FlowsOn<UdpPair> flows(pair);
  Flow* transfer = bulk ? &flows.start(4ull << 30, 0) : nullptr;
  pair.run_for(3s);
  OpenRequest request = FlowsOn<UdpPair>::simple_request();
  request.features = options.features;
  Stream& stream = pair.a.session.open(request, pair.now());
  StreamId id = stream.id();
  std::vector<TimePoint> sent;
  Delays delays;
  std::uint64_t read = 0;
  auto others = pair.b.on_event;
  pair.b.on_event = [&, others](const Event& event) {
    if (event.kind != Event::Kind::stream || event.stream != id) return others(event);
    Stream* there = pair.b.session.find(id);
    if (!there) return;
    if (event.stream_event == EventKind::opened) there->give_answer({});
    std::size_t size = there->reader().readable().size();
    if (!size) return;
    there->reader().consume(size, pair.now(), pair.b.session.liveness().smoothed_rtt());
    for (std::uint64_t before = read / kMessage, after = (read += size) / kMessage; before < after; ++before)
      delays.milliseconds.push_back(
          std::chrono::duration<double, std::milli>(pair.now() - sent[before]).count());
  };
  std::uint64_t bulk_before = transfer ? transfer->server_reads.read : 0;
  TimePoint begun = pair.now();
  Buffer message(kMessage);
  for (int i = 0; i < messages; ++i) {
    sent.push_back(pair.now());
    pair.a.session.find(id)->writer().write(message);
    pair.run_for(20ms);
  }
  double seconds = std::chrono::duration<double>(pair.now() - begun).count();
  if (transfer)
    delays.bulk_mbit = static_cast<double>(transfer->server_reads.read - bulk_before) * 8e-6 / seconds;
  pair.run_for(2s);
  REQUIRE(delays.milliseconds.size() == sent.size());
  delays.counters = pair.a.carrier.counters();
  delays.counters.symbols_recovered = pair.b.carrier.counters().symbols_recovered;
  delays.counters.repairs_wasted = pair.b.carrier.counters().repairs_wasted;
  return delays;
}

UdpPairOptions lossy(double loss, bool fec, std::uint64_t seed, std::uint64_t rate_bits = 51'840'000) {
  simulator::DirectionConfig one;
  one.link.rate_bits = rate_bits;
  one.link.delay = 50ms;
  one.link.loss = loss;
  one.link.queue_bytes = 648'000;
  one.mtu_bytes = 1500;
  UdpPairOptions options{
      .seed = seed, .line = simulator::LineConfig::symmetric(one), .rate_bits = rate_bits * 97 / 100};
  if (!fec) options.features.fec.mode = config::Fec::Mode::off;
  return options;
}

}  // namespace

TEST_CASE("with error correction 99 of 100 small messages are at most 25 ms late on a line that loses 5 %") {
  // Half of them were neither lost nor held up by one that was: so long takes the way, the line's queue
  // included.
  Delays with = message_delays(lossy(0.05, true, 1, 10'000'000), true, 1000);
  CHECK(with.at(0.99) <= with.at(0.5) + 25);
  Delays without = message_delays(lossy(0.05, false, 1, 10'000'000), true, 300);
  CHECK(without.at(0.99) > without.at(0.5) + 75);
}

TEST_CASE("message delays", "[.figures]") {
  for (bool bulk : {true, false})
    for (double loss : {0.0, 0.01, 0.05, 0.1})
      for (bool fec : {true, false}) {
        Delays delays = message_delays(lossy(loss, fec, 11), bulk, 10'000);
        std::printf(
            "bulk %d loss %.2f fec %d: p50 %.1f p90 %.1f p99 %.1f p99.9 %.1f max %.1f ms; bulk %.2f Mbit/s; "
            "repairs %llu recovered %llu wasted %llu lost %llu\n",
            bulk, loss, fec, delays.at(0.5), delays.at(0.9), delays.at(0.99), delays.at(0.999), delays.at(1),
            delays.bulk_mbit, static_cast<unsigned long long>(delays.counters.repairs_sent),
            static_cast<unsigned long long>(delays.counters.symbols_recovered),
            static_cast<unsigned long long>(delays.counters.repairs_wasted),
            static_cast<unsigned long long>(delays.counters.packets_lost));
      }
}
