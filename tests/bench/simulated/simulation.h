// SPDX-License-Identifier: Apache-2.0
// The parts of a run: a pair with its flows, and a TCP flow by itself on the same line. b sends, a receives,
// as in a download.
#pragma once
#include <cstdio>
#include <cstdlib>

#include "tests/proxy/link/simulated_flow.h"
#include "tests/proxy/link/udp/simulated_udp_pair.h"
#include "tests/simulator/tcp.h"

namespace longhaul::bench {

using namespace link::simulation;
using simulator::Duration;
using simulator::TimePoint;
using namespace std::chrono_literals;

inline double in_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

struct Simulation {
  explicit Simulation(const UdpPairOptions& options) : pair(options), flows(pair) {}
  Simulation(const UdpPairOptions& options, simulator::Network& network, simulator::Line& line)
      : pair(options, network, line), flows(pair) {}

  void come_up() {
    if (!pair.run_until([&] { return pair.up(); }, 30s)) fail("the pair did not come up");
  }
  void check() const {
    if (!flows.all_right()) fail("WRONG BYTES");
    if (pair.a.error || pair.b.error) fail("the peer broke the protocol");
  }
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
  }

  UdpPair pair;
  FlowsOn<UdpPair> flows;
};

inline constexpr std::uint64_t kEndless = std::uint64_t{1} << 50;

// What the clients have read.
inline std::uint64_t delivered(const Simulation& two) {
  std::uint64_t bytes = 0;
  for (const auto& [id, flow] : two.flows.flows()) bytes += flow.client_reads.read;
  return bytes;
}

// One TCP flow; several on one line need different ports.
struct Cubic {
  Cubic(simulator::Network& network, simulator::Line& line, std::uint64_t segments = 0,
        std::uint16_t port = 1)
      : sender({.to = {100, port}, .segments = segments, .start = network.now()},
               std::make_unique<simulator::CubicLaw>()) {
    network.attach(receiver, line, simulator::LineEnd::a, {100, port});
    network.attach(sender, line, simulator::LineEnd::b, {101, port}).wake();
  }
  simulator::TcpReceiver receiver;
  simulator::TcpSender sender;
};

}  // namespace longhaul::bench
