// SPDX-License-Identifier: Apache-2.0
// Two carriers on the virtual network: what comes through whole, and how fast.
#include "proxy/link/udp/udp_carrier.h"

#include <catch2/catch.hpp>

#include "../simulated_flow.h"
#include "simulated_udp_pair.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

simulator::LineConfig oc1(Duration rtt, double loss) {
  simulator::DirectionConfig one;
  one.link.rate_bits = 51'840'000;
  one.link.delay = rtt / 2;
  one.link.loss = loss;
  one.mtu_bytes = 1500;
  double bdp = 51.84e6 / 8 * std::chrono::duration<double>(rtt).count();
  one.link.queue_bytes = std::max<std::uint64_t>(64 * 1024, static_cast<std::uint64_t>(bdp));
  return simulator::LineConfig::symmetric(one);
}

}  // namespace

TEST_CASE("flows arrive complete over a lossy line, with or without a configured rate") {
  for (double loss : {0.0, 0.01, 0.1})
    for (std::uint64_t rate : {0u, 51'840'000u}) {
      INFO("loss " << loss << " rate " << rate);
      UdpPair pair({.seed = 7, .line = oc1(50ms, loss), .rate_bits = rate});
      REQUIRE(pair.run_until([&] { return pair.up(); }, 2s));
      FlowsOn<UdpPair> flows(pair);
      for (int i = 0; i < 50; ++i) flows.start(1000 + 2000 * i, 300'000 - 3000 * i);
      REQUIRE(pair.run_until([&] { return flows.all_complete(); }, 30s));
      CHECK(flows.all_right());
      CHECK_FALSE(pair.a.error);
      CHECK_FALSE(pair.b.error);
    }
}

TEST_CASE("each flow's rule sets its number of repairs, and may change") {
  UdpPair pair({.seed = 2, .line = oc1(20ms, 0), .rate_bits = 51'840'000});
  REQUIRE(pair.run_until([&] { return pair.up(); }, 2s));
  FlowsOn<UdpPair> flows(pair);
  auto transfer = [&](config::Fec fec) {
    std::uint64_t repairs = pair.a.carrier.counters().repairs_sent,
                  sent = pair.a.carrier.counters().packets_sent;
    OpenRequest request = FlowsOn<UdpPair>::simple_request();
    request.features.fec = fec;
    Flow& flow = flows.start(1'000'000, 0, request);
    REQUIRE(pair.run_until([&] { return flow.complete(); }, 10s));
    auto counters = pair.a.carrier.counters();
    return static_cast<double>(counters.repairs_sent - repairs) /
           static_cast<double>(counters.packets_sent - sent - (counters.repairs_sent - repairs));
  };
  // Nothing is lost, so adaptive correction has nothing to do.
  CHECK(transfer({}) == 0);
  CHECK(transfer({.mode = config::Fec::Mode::fixed, .source_packets = 10, .repair_packets = 2}) ==
        Approx(0.2).margin(0.03));
  CHECK(transfer({.mode = config::Fec::Mode::off}) == 0);

  std::uint64_t before = pair.a.carrier.counters().repairs_sent;
  OpenRequest request = FlowsOn<UdpPair>::simple_request();
  Flow& flow = flows.start(3'000'000, 0, request);
  pair.run_for(200ms);
  CHECK(pair.a.carrier.counters().repairs_sent == before);
  request.features.fec = {.mode = config::Fec::Mode::fixed, .source_packets = 4, .repair_packets = 1};
  pair.a.session.change_features(flow.id, request.features);
  REQUIRE(pair.run_until([&] { return flow.complete(); }, 10s));
  CHECK(pair.a.carrier.counters().repairs_sent > before + 200);
  CHECK(flows.all_right());
}

TEST_CASE("bulk over OC-1", "[.figures]") {
  for (Duration rtt : {0ms, 30ms, 100ms, 250ms})
    for (double loss : {0.0, 0.001, 0.01, 0.05, 0.1})
      for (std::uint64_t rate : {0u, 51'840'000u}) {
        UdpPair pair({.seed = 3, .line = oc1(rtt, loss), .rate_bits = rate});
        REQUIRE(pair.run_until([&] { return pair.up(); }, 2s));
        pair.run_for(1s);
        FlowsOn<UdpPair> flows(pair);
        Flow& flow = flows.start(1 << 30, 0);
        pair.run_for(3s);
        std::uint64_t before = flow.server_reads.read;
        std::uint64_t sent = pair.node_a.bytes_sent();
        pair.run_for(10s);
        double goodput = static_cast<double>(flow.server_reads.read - before) * 8 / 10;
        double share = 1400.0 / 1500;
        auto counters = pair.a.carrier.counters();
        std::printf(
            "rtt %4lld loss %5.3f told %d: %6.2f Mbit/s %5.1f %% of bound; sent/payload %.3f lost %llu "
            "spurious %llu srtt %.1f ms mtu %zu repairs %llu\n",
            static_cast<long long>(rtt / 1ms), loss, rate != 0, goodput / 1e6,
            100 * goodput / (51.84e6 * share * (1 - loss)),
            static_cast<double>(pair.node_a.bytes_sent() - sent) / (goodput * 10 / 8),
            static_cast<unsigned long long>(counters.packets_lost),
            static_cast<unsigned long long>(counters.spurious_losses),
            std::chrono::duration<double, std::milli>(pair.a.carrier.rtt().smoothed()).count(),
            pair.a.carrier.flight().mtu().current(), static_cast<unsigned long long>(counters.repairs_sent));
        CHECK(flows.all_right());
      }
}

TEST_CASE("a 30 MB file over OC-1 at 250 ms", "[.figures]") {
  for (double loss : {0.0, 0.01, 0.05, 0.1})
    for (std::uint64_t rate : {0u, 51'840'000u})
      for (std::uint64_t seed : {1, 2, 3}) {
        UdpPair pair({.seed = seed, .line = oc1(250ms, loss), .rate_bits = rate});
        REQUIRE(pair.run_until([&] { return pair.up(); }, 2s));
        pair.run_for(500ms);
        FlowsOn<UdpPair> flows(pair);
        for (int transfer = 0; transfer < 2; ++transfer) {
          Flow& flow = flows.start(30'000'000, 0);
          TimePoint begun = pair.now();
          REQUIRE(pair.run_until([&] { return flow.server_reads.read == 30'000'000; }, 60s));
          double seconds = std::chrono::duration<double>(pair.now() - begun).count();
          std::printf("loss %.2f told %d seed %llu transfer %d: %.2f Mbit/s\n", loss, rate != 0,
                      static_cast<unsigned long long>(seed), transfer, 240 / seconds);
          pair.run_for(1s);
        }
      }
}
