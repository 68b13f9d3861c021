// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/carrier_contest.h"

#include "../simulated_flow.h"
#include "simulated_udp_pair.h"
#include "tests/simulator/constant_rate.h"
#include "tests/simulator/tcp.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;
using namespace std::chrono_literals;

TEST_CASE("TCP has won when it answered twice while UDP was silent") {
  using Next = udp::CarrierContest::Next;
  udp::CarrierContest contest;
  CHECK(contest.step(false, false) == Next::nothing);
  CHECK(contest.step(true, false) == Next::ask_both);
  CHECK(contest.step(true, false) == Next::nothing);
  CHECK(contest.step(true, true) == Next::ask_both);
  CHECK(contest.step(true, false) == Next::nothing);
  CHECK(contest.step(true, true) == Next::tcp_won);
  CHECK(contest.step(true, true) == Next::nothing);
}

TEST_CASE("an answer over UDP ends the contest, and the next doubt begins another") {
  using Next = udp::CarrierContest::Next;
  udp::CarrierContest contest;
  CHECK(contest.step(true, false) == Next::ask_both);
  CHECK(contest.step(true, true) == Next::ask_both);
  CHECK(contest.step(false, true) == Next::nothing);
  // The answer to an earlier question does not count.
  CHECK(contest.step(true, true) == Next::ask_both);
  CHECK(contest.step(true, false) == Next::nothing);
}

namespace {

// Questions over a connection that repeats them until they are answered, on the line that UDP uses, too: what
// TCP does with a few bytes.
struct Question {
  std::uint64_t number = 0;
  bool is_answer = false;
};

class Asking final : public simulator::Endpoint {
 public:
  explicit Asking(simulator::Address to) : to_(to) {}
  void ask(TimePoint now) {
    ++number_;
    interval_ = 200ms;
    send_at_ = now;
  }
  bool answered() const { return number_ > 0 && answered_ == number_; }

  void receive(simulator::Datagram& datagram, TimePoint) override {
    Question question;
    std::memcpy(&question, datagram.payload.data(), sizeof question);
    if (!question.is_answer) to_answer_ = question.number;
    if (question.is_answer && question.number == number_) answered_ = number_;
    if (answered()) send_at_.reset();
  }
  void transmit(simulator::Outbox& out, TimePoint now) override {
    if (to_answer_) send(out, {std::exchange(to_answer_, 0), true});
    if (!send_at_ || *send_at_ > now) return;
    send(out, {number_, false});
    send_at_ = now + std::exchange(interval_, 2 * interval_);
  }
  std::optional<TimePoint> next_timeout() const override { return send_at_; }
  void on_timeout(TimePoint) override {}

 private:
  void send(simulator::Outbox& out, const Question& question) {
    out.send(to_, std::as_bytes(std::span(&question, 1)), 100);
  }
  simulator::Address to_;
  std::uint64_t number_ = 0, answered_ = 0, to_answer_ = 0;
  Duration interval_{};
  std::optional<TimePoint> send_at_;
};

// A link with both carriers, and room for others on its line.
struct Both {
  explicit Both(const UdpPairOptions& options)
      : network(options.seed),
        line(network.add_line(options.line)),
        pair(options, network, line),
        flows(pair) {
    pair.a.tcp = {[this] { ask(a, node_a); }, [this] { return a.answered(); }};
    pair.b.tcp = {[this] { ask(b, node_b); }, [this] { return b.answered(); }};
    REQUIRE(pair.run_until([&] { return pair.up(); }, 10s));
  }
  // Not from inside of another endpoint's turn.
  void ask(Asking& asking, simulator::Node& node) {
    asking.ask(network.now());
    network.after(0ns, [&node] { node.wake(); });
  }

  static constexpr simulator::Address kA{50, 1}, kB{51, 1};
  simulator::Network network;
  simulator::Line& line;
  Asking a{kB}, b{kA};
  simulator::Node& node_a = network.attach(a, line, simulator::LineEnd::a, kA);
  simulator::Node& node_b = network.attach(b, line, simulator::LineEnd::b, kB);
  UdpPair pair;
  FlowsOn<UdpPair> flows;
};

}  // namespace

TEST_CASE("UDP is not given up for a queue of some seconds that another sender fills at once") {
  const Duration queue = GENERATE(1500ms, 4s);
  UdpPairOptions options{.seed = 3, .line = line_of(10, 30ms)};
  for (auto* direction : {&options.line.a_to_b, &options.line.b_to_a})
    direction->link.queue_bytes = static_cast<std::uint64_t>(10e6 / 8 * udp::seconds(queue));
  Both both(options);
  both.pair.run_for(3s);
  simulator::CountingReceiver sink;
  simulator::ConstantRateSender burst({.to = {60, 1},
                                       .rate_bits = 200'000'000,
                                       .start = both.network.now(),
                                       .stop = both.network.now() + 500ms});
  both.network.attach(sink, both.line, simulator::LineEnd::a, {60, 1});
  both.network.attach(burst, both.line, simulator::LineEnd::b, {61, 1}).wake();
  both.flows.start(100, 2'000'000);
  CHECK(both.pair.run_until([&] { return both.flows.all_complete(); }, 30s));
  CHECK(both.flows.all_right());
  CHECK(both.pair.b.failures == 0);
  CHECK(both.pair.a.failures == 0);
}

TEST_CASE("UDP is not given up where CUBIC overflows the queue while the link comes up") {
  for (const Duration begins : {0ms, 200ms, 400ms, 800ms, 1600ms})
    for (const double queue : {1., 20., 60.}) {
      UdpPairOptions options{.seed = 7, .line = line_of(20, 40ms, 0, queue)};
      INFO("a queue of " << queue << " round trips, CUBIC begins after " << begins / 1ms << " ms");
      Both both(options);
      both.flows.start(0, 4'000'000);
      both.pair.run_for(begins);
      simulator::TcpReceiver receiver;
      simulator::TcpSender cubic(
          {.to = {60, 1}, .start = both.network.now()},
          std::make_unique<simulator::CubicLaw>(simulator::CubicOptions{.hystart = false}));
      both.network.attach(receiver, both.line, simulator::LineEnd::a, {60, 1});
      both.network.attach(cubic, both.line, simulator::LineEnd::b, {61, 1}).wake();
      both.pair.run_for(4s);
      both.flows.start(0, 1'000'000);
      both.pair.run_for(8s);
      CHECK(both.pair.b.failures == 0);
      CHECK(both.pair.a.failures == 0);
      CHECK(both.flows.all_right());
    }
}

TEST_CASE("neither carrier answers during an outage, and UDP goes on soon after it") {
  const Duration outage = GENERATE(2s, 5s, 14s);
  UdpPairOptions options{.seed = 5, .line = line_of(20, 60ms)};
  Both both(options);
  both.flows.start(0, 100'000'000);
  both.pair.run_for(3s);
  both.line.cut();
  both.pair.run_for(outage);
  CHECK(both.pair.b.failures == 0);
  both.line.restore();
  const auto read = [&] { return both.flows.flows().begin()->second.client_reads.read; };
  const std::uint64_t before = read();
  CHECK(both.pair.run_until([&] { return read() > before + 20'000; }, 1200ms));
  CHECK(both.pair.b.failures == 0);
  CHECK(both.flows.all_right());
}

TEST_CASE("UDP alone is blocked: it is given up after a second, and not sooner") {
  UdpPairOptions options{.seed = 5, .line = line_of(20, 60ms)};
  Both both(options);
  both.flows.start(0, 100'000'000);
  both.pair.run_for(3s);
  both.pair.node_b.readdress({9, 9});  // what a sends to b does not arrive, and no path to 9 is known
  both.pair.node_a.readdress({9, 8});
  both.pair.run_for(990ms);
  CHECK(both.pair.b.failures == 0);
  CHECK(both.pair.run_until([&] { return both.pair.b.failures > 0; }, 300ms));
}
