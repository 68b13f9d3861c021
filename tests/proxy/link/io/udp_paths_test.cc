// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_paths.h"

#include "udp_ends.h"

namespace longhaul::link::udp {
namespace {

using namespace testing;

// Whose flows go over UDP already; the limits are of a's keys.
struct PairOnUdp : Pair {
  explicit PairOnUdp(PacketLimits limits = {}) {
    a.limits = limits;
    new_keys(1);
    REQUIRE(both_on_udp());
  }
  void complete() {
    REQUIRE(until([&] { return flows.all_complete(); }));
    CHECK(flows.all_right());
  }
  simulation::FlowsOn<Pair> flows{*this};
};

TEST_CASE("flows use UDP as soon as it answers") {
  PairOnUdp pair;
  pair.flows.start(3'000'000, 2'000'000);
  const std::uint64_t before = pair.a.tcp_bytes + pair.b.tcp_bytes;
  pair.complete();
  // A PING may still go.
  CHECK(pair.a.tcp_bytes + pair.b.tcp_bytes < before + 100);
  CHECK(status_of(pair.a).udp.state == UdpState::up);
  CHECK(status_of(pair.a).udp.bytes_sent > 3'000'000);
  CHECK(status_of(pair.b).udp.remote_address == "127.0.0.1:" + std::to_string(pair.relay->port()));
}

TEST_CASE("flows stay on the control connection if UDP does not answer") {
  Pair pair;
  pair.relay->closed = true;
  pair.new_keys(1);
  simulation::FlowsOn flows(pair);
  flows.start(1'000'000, 1'000'000);
  REQUIRE(pair.until([&] { return flows.all_complete(); }));
  CHECK(flows.all_right());
  CHECK_FALSE(pair.a.paths.carrying());
  CHECK(pair.until([&] { return status_of(pair.a).udp.state == UdpState::failed; }));
  CHECK(status_of(pair.a).udp.fallbacks == 0);
}

TEST_CASE("if UDP falls silent its bytes are sent again elsewhere, and UDP is used again when it answers") {
  PairOnUdp pair;
  pair.flows.start(20'000'000, 20'000'000);
  REQUIRE(pair.until([&] { return status_of(pair.a).udp.bytes_sent > 500'000; }));
  pair.relay->closed = true;
  REQUIRE(pair.until([&] { return !pair.a.paths.carrying() && !pair.b.paths.carrying(); }));
  CHECK(pair.a.session.preferred() == kTcp);
  pair.complete();
  CHECK(status_of(pair.a).udp.fallbacks == 1);
  pair.relay->closed = false;
  pair.a.paths.probe_now(Clock::now());
  CHECK(pair.both_on_udp());
}

TEST_CASE("while neither UDP nor TCP delivers, the link stays on UDP, and TCP's answers change that") {
  PairOnUdp pair;
  pair.flows.start(20'000'000, 20'000'000);
  REQUIRE(pair.until([&] { return status_of(pair.a).udp.bytes_sent > 500'000; }));
  pair.a.tcp_stands = pair.b.tcp_stands = true;
  pair.relay->closed = true;
  // Far beyond what UDP has alone.
  CHECK_FALSE(pair.until([&] { return !pair.a.paths.carrying() || !pair.b.paths.carrying(); }, 2500ms));
  SECTION("UDP is the first to deliver again") {
    pair.relay->closed = false;
    pair.complete();
    CHECK(status_of(pair.a).udp.fallbacks == 0);
  }
  SECTION("TCP is the first to deliver again") {
    pair.a.tcp_stands = pair.b.tcp_stands = false;
    pair.a.ask_again();
    pair.b.ask_again();
    REQUIRE(pair.until([&] { return !pair.a.paths.carrying() && !pair.b.paths.carrying(); }));
    pair.complete();
  }
}

TEST_CASE("new keys take over during a flow without a fallback, and old ones end") {
  PairOnUdp pair;
  auto& flows = pair.flows;
  flows.start(4'000'000, 4'000'000);
  for (int epoch = 2; epoch <= 8; ++epoch) {
    const auto sent = status_of(pair.a).udp.bytes_sent;
    REQUIRE(pair.until(
        [&] { return flows.all_complete() || status_of(pair.a).udp.bytes_sent > sent + 500'000; }));
    pair.new_keys(epoch);
    pair.kick();
    CHECK(pair.a.paths.carrying());
  }
  pair.complete();
  CHECK(status_of(pair.a).udp.fallbacks == 0);
  CHECK(status_of(pair.b).udp.fallbacks == 0);
}

TEST_CASE("exhausted keys end the control connection once, and the keys of the next one continue") {
  const bool own = GENERATE(true, false);
  INFO((own ? "nothing more may be sealed" : "too much did not open"));
  // Fewer than what goes at once while nothing is known of the line.
  PairOnUdp pair(own ? PacketLimits{.numbers = 200} : PacketLimits{.failed_opens = 20});
  pair.flows.start(4'000'000, 4'000'000);
  pair.relay->damages = !own;
  REQUIRE(pair.until([&] { return !pair.a.closed.empty(); }));
  CHECK_FALSE(pair.a.paths.carrying());
  pair.relay->damages = false;
  const auto sent = status_of(pair.a).udp.packets_sent;
  pair.a.limits = {};
  pair.new_keys(2);
  REQUIRE(pair.both_on_udp());
  pair.complete();
  CHECK(status_of(pair.a).udp.packets_sent > sent);
  CHECK(pair.a.closed == std::vector{kTcp});
  CHECK(pair.b.closed.empty());
}

TEST_CASE("a change of the configured transport applies while flows run") {
  PairOnUdp pair;
  auto& flows = pair.flows;
  flows.start(4'000'000, 4'000'000);
  for (Transport wish : {Transport::tcp, Transport::udp, Transport::tcp, Transport::automatic}) {
    pair.a.transport = pair.b.transport = wish;
    pair.kick();
    CHECK(pair.a.paths.carrying() == (wish != Transport::tcp));
    REQUIRE(pair.until([&, sent = pair.a.tcp_bytes, udp = status_of(pair.a).udp.bytes_sent] {
      return flows.all_complete() ||
             (wish == Transport::tcp ? pair.a.tcp_bytes > sent + 300'000
                                     : status_of(pair.a).udp.bytes_sent > udp + 300'000);
    }));
  }
  pair.complete();
  CHECK(status_of(pair.a).udp.fallbacks == 0);

  // Loopback is a short line, which TCP fills for less if nobody said its rate.
  for (End* end : {&pair.a, &pair.b}) end->rate_bits = 0;
  pair.kick();
  CHECK_FALSE(pair.a.paths.carrying());
  pair.a.transport = pair.b.transport = Transport::udp;
  pair.kick();
  CHECK(pair.a.paths.carrying());
  for (End* end : {&pair.a, &pair.b}) end->rate_bits = kRate;

  // The one that is wished and not there is no reason to stop.
  pair.a.transport = pair.b.transport = Transport::tcp;
  pair.kick();
  for (End* end : {&pair.a, &pair.b}) {
    end->tcp_gone = true;
    end->session.detach(kTcp, Clock::now());
  }
  pair.kick();
  CHECK(pair.a.paths.carrying());
  flows.start(500'000, 500'000);
  pair.complete();
}

TEST_CASE("the doubt after the control connection ended is only cleared by an answer to a newer packet") {
  PairOnUdp pair;
  CHECK_FALSE(pair.a.paths.in_doubt());
  pair.relay->holds = true;
  REQUIRE(pair.until([&] { return !pair.relay->held.empty(); }));  // a ping, at the latest
  pair.a.tcp_gone = true;
  pair.a.session.detach(kTcp, Clock::now());
  pair.a.after_activity();
  CHECK(pair.a.paths.in_doubt());

  // What the peer sent before comes now.
  pair.relay->holds = false;
  pair.relay->closed = true;
  const auto received = status_of(pair.a).udp.packets_received;
  pair.relay->deliver_held();
  REQUIRE(pair.until([&] { return status_of(pair.a).udp.packets_received > received; }));
  // On a machine that stood still meanwhile the path has been given up, and nothing is carried at all.
  CHECK((pair.a.paths.in_doubt() || !pair.a.paths.carrying()));

  pair.relay->closed = false;
  if (!pair.a.paths.carrying()) pair.a.paths.probe_now(Clock::now());
  CHECK(pair.until([&] { return pair.a.paths.carrying() && !pair.a.paths.in_doubt(); }));
}

TEST_CASE("a path known to an earlier daemon starts at its rate, and stays known if nothing was sent") {
  Pair pair;
  for (End* end : {&pair.a, &pair.b}) {
    end->rate_bits = 0;
    end->transport = Transport::udp;
  }
  CHECK(pair.a.paths.memories().empty());
  pair.a.paths.recall({"", {.rate = kRate / 8, .min_rtt = 1ms}});
  pair.a.paths.recall({"another", {.rate = 1000, .min_rtt = 2ms}});
  const auto remembered = [&](const std::string& line) -> std::uint64_t {
    for (const auto& [name, memory] : pair.a.paths.memories())
      if (name == line) return memory.rate;
    return 0;
  };
  for (int epoch = 1; epoch <= 3; ++epoch) {
    pair.new_keys(epoch);
    REQUIRE(pair.both_on_udp());
    CHECK(status_of(pair.a).udp.pacing_rate_bits > kRate * 9 / 10);
    CHECK(status_of(pair.a).udp.pacing_rate_bits < kRate * 11 / 10);
    CHECK(remembered("") == kRate / 8);
  }
  pair.a.paths.end();
  CHECK(remembered("") == kRate / 8);
  CHECK(remembered("another") == 1000);
}

TEST_CASE("a rate that an earlier daemon measured is remembered whole, and begun with a share of it") {
  Pair pair;
  for (End* end : {&pair.a, &pair.b}) {
    end->rate_bits = 0;
    end->transport = Transport::udp;
  }
  pair.a.paths.recall({"", {.rate = kRate / 8, .min_rtt = 1ms, .trust = 0.5}});
  pair.new_keys(1);
  REQUIRE(pair.both_on_udp());
  CHECK(status_of(pair.a).udp.pacing_rate_bits > kRate * 4 / 10);
  CHECK(status_of(pair.a).udp.pacing_rate_bits < kRate * 6 / 10);
  REQUIRE(pair.a.paths.memories().size() == 1);
  CHECK(pair.a.paths.memories().front().memory.rate == kRate / 8);
}

}  // namespace
}  // namespace longhaul::link::udp
