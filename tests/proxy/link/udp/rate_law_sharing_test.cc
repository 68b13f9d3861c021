// SPDX-License-Identifier: Apache-2.0
// The two laws on lines that they share, with each other or with CUBIC.
#include <catch2/catch.hpp>

#include "law_on_line.h"
#include "tests/simulator/tcp.h"

using namespace longhaul;
using namespace longhaul::link::udp;
using namespace longhaul::link::udp::law_on_line;

TEST_CASE("two links share a line within ten per cent of each other, and leave no queue") {
  for (const bool told : {true, false})
    for (const Duration rtt : {30ms, 100ms, 250ms}) {
      INFO((told ? "paced, " : "measured, ") << rtt / 1ms << " ms");
      std::vector<double> ratios, delays;
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Network network(seed);
        Line& line = network.add_line(LineConfig::symmetric(direction({.rtt = rtt})));
        const auto law = [&](std::uint64_t of) {
          return told ? paced(kRate, network.now(), of) : measured(network.now(), of);
        };
        BulkFlow first(network, line, 1, law(2 * seed - 1), rtt);
        BulkFlow second(network, line, 2, law(2 * seed), rtt);
        network.run_for(30s);
        first.sender.reset_rtt();
        network.run_for(30s);
        const double one = first.rate(network.now() - 30s, network.now());
        const double other = second.rate(network.now() - 30s, network.now());
        CHECK(one + other > 0.95 * kRate);
        ratios.push_back(std::max(one, other) / std::min(one, other));
        delays.push_back(first.sender.rtt_ms().mean());
      }
      std::ranges::sort(ratios);
      std::ranges::sort(delays);
      CHECK(ratios[2] < 1.1);
      CHECK(ratios[4] < 1.5);  // by chance another link is taken for a sender that fills queues
      CHECK(delays[2] < 1.25 * std::chrono::duration<double, std::milli>(rtt).count() + 5);
    }
}

TEST_CASE("beside a CUBIC flow on a lossless line neither side starves") {
  for (const bool told : {true, false})
    for (const Duration rtt : {30ms, 100ms}) {
      INFO((told ? "paced, " : "measured, ") << rtt / 1ms << " ms");
      Network network(1);
      Line& line = network.add_line(LineConfig::symmetric(direction({.rtt = rtt})));
      TcpReceiver receiver;
      TcpSender sender({.to = {2, 9}, .start = network.now()}, std::make_unique<CubicLaw>());
      auto& node = network.attach(sender, line, LineEnd::a, {1, 9});
      network.attach(receiver, line, LineEnd::b, {2, 9});
      node.wake();
      BulkFlow flow(network, line, 1, told ? paced(kRate, network.now()) : measured(network.now()), rtt);
      network.run_for(60s);
      CHECK(flow.rate(network.now() - 40s, network.now()) > 0.3 * kRate);
      CHECK(receiver.meter().bits_per_second(network.now() - 40s, network.now()) > 0.3 * kRate * 1448 / 1500);
    }
}
