// SPDX-License-Identifier: Apache-2.0
// A random schedule of changes of a line under two sessions over UDP carriers, from a seed: what the line
// becomes, when, and whether every byte is right, nothing stops for good, and memory is bounded.
// changing_line_test.cc runs few, bench_simulated many.
#pragma once
#include <optional>
#include <string>

#include "../simulated_flow.h"
#include "simulated_udp_pair.h"

namespace longhaul::link::simulation {

inline constexpr std::uint64_t kChangingMemory = 1 << 20;  // credit of a side, and what it keeps to repeat

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  double between(double least, double most) {
    return least + (most - least) * static_cast<double>(random_() % 10'000) / 10'000;
  }
  std::chrono::microseconds ms(double least, double most) {
    return std::chrono::microseconds(static_cast<std::int64_t>(1000 * between(least, most)));
  }

 private:
  std::mt19937_64 random_;
};

// What one direction may become; the next change begins from it.
inline void change_something(Dice& dice, simulator::DirectionConfig& direction) {
  wan::LinkConfig& link = direction.link;
  switch (dice.below(12)) {
    case 0:
    case 1:
      link.delay = dice.one_in(3) ? dice.ms(100, 600) : dice.ms(5, 100);
      break;
    case 2:
    case 3:
      link.rate_bits =
          static_cast<std::uint64_t>(1e6 * (dice.one_in(2) ? dice.between(1, 5) : dice.between(5, 50)));
      break;
    case 4:
      link.loss = dice.one_in(2) ? 0 : dice.between(0, 0.2);
      break;
    case 5:
      link.burst_loss.reset();
      if (dice.one_in(2)) link.burst_loss = wan::BurstLoss{.enter = 0.01, .leave = dice.between(0.1, 0.5)};
      break;
    case 6:
      link.jitter = dice.one_in(2) ? Duration{0} : Duration(dice.ms(0, 5));
      break;
    case 7:
      link.reorder = dice.one_in(2) ? 0 : dice.between(0, 0.05);
      link.reorder_by = dice.ms(1, 30);
      break;
    case 8:
      link.duplicate = dice.one_in(2) ? 0 : 0.02;
      direction.corrupt = dice.one_in(2) ? 0 : 0.01;
      break;
    case 9: {
      using Kind = wan::AqmConfig::Kind;
      link.aqm.reset();
      if (dice.one_in(2))
        link.aqm = wan::AqmConfig{
            .kind = std::array{Kind::codel, Kind::fq_codel, Kind::pie, Kind::red}[dice.below(4)]};
      break;
    }
    case 10:
      direction.policer.reset();
      if (dice.one_in(2))
        direction.policer = simulator::Policer{
            .rate_bits = static_cast<std::uint64_t>(1e6 * dice.between(1, 20)), .burst_bytes = 65'536};
      break;
    case 11:
      link.queue_bytes = static_cast<std::uint64_t>(
          1000 * (dice.one_in(2) ? dice.between(20, 100) : dice.between(100, 2000)));
      direction.mtu_bytes = dice.one_in(2) ? 1500 : static_cast<std::uint32_t>(1280 + dice.below(200));
      break;
  }
  link.jitter = std::min(link.jitter, link.delay);
}

struct ScheduleTerms {
  std::uint64_t seed = 1;
  bool hosts_stall = false;               // beside the line's changes, hosts have no processor for a while
  Duration goes_on_within{60s};           // after the last change
  Duration ends_within{120s};             // what was accepted before
  std::function<void(UdpPair&)> watch{};  // called when the pair is there
};

struct ScheduleOutcome {
  std::string failure{};      // empty: none
  Duration gone_on_after{0};  // since the last change, both directions
};

class Schedule {
 public:
  explicit Schedule(const ScheduleTerms& terms)
      : terms_(terms), dice_(terms.seed), stalls_(terms.seed + 0x57a11), pair_(options()), flows_(pair_) {
    if (terms.watch) terms.watch(pair_);
  }

  ScheduleOutcome run() {
    if (!pair_.run_until([&] { return pair_.up(); }, 30s)) return {"the pair did not come up"};
    constexpr std::uint64_t kNoEnd = std::uint64_t{1} << 40;
    Flow& download = flows_.start(0, kNoEnd);
    Flow& upload = flows_.start(kNoEnd, 1000);
    for (std::uint64_t left = 5 + dice_.below(15); left > 0; --left) {
      change();
      if (const auto failure = broken()) return {*failure};
    }
    const TimePoint changed = pair_.now();
    const std::uint64_t down = download.client_reads.read, up = upload.server_reads.read;
    const auto went_on = [&] { return download.client_reads.read > down && upload.server_reads.read > up; };
    if (!pair_.run_until(went_on, terms_.goes_on_within)) return {"it does not go on"};
    ScheduleOutcome outcome{.gone_on_after = pair_.now() - changed};
    end(download);
    end(upload);
    if (!pair_.run_until([&] { return flows_.all_complete(); }, terms_.ends_within))
      outcome.failure = "what was accepted does not arrive";
    else if (!pair_.run_until([&] { return forgotten(); }, terms_.goes_on_within))
      outcome.failure = "something is remembered";
    else
      outcome.failure = broken().value_or("");
    return outcome;
  }

 private:
  UdpPairOptions options() {
    UdpPairOptions options{.seed = terms_.seed,
                           .line = line_of(dice_.between(1, 50), dice_.ms(2, 200)),
                           .credit_bytes = kChangingMemory,
                           .retained_bytes = kChangingMemory,
                           .max_streams = 16};
    if (dice_.one_in(2)) options.rate_bits = options.line.a_to_b.link.rate_bits;
    line_ = options.line;
    return options;
  }

  void change() {
    for (std::uint64_t changes = 1 + dice_.below(3); changes > 0; --changes) {
      if (dice_.one_in(2)) change_something(dice_, line_.a_to_b);
      if (dice_.one_in(2)) change_something(dice_, line_.b_to_a);
    }
    pair_.line.a_to_b().change(line_.a_to_b);
    pair_.line.b_to_a().change(line_.b_to_a);
    if (dice_.one_in(6)) {
      pair_.line.cut();
      pair_.run_for(dice_.ms(100, dice_.one_in(5) ? 15'000 : 2'000));
      pair_.line.restore();
    }
    if (dice_.one_in(12)) pair_.node_a.readdress({pair_.address_a.host, ++port_});
    if (dice_.one_in(3)) flows_.start(dice_.below(100'000), dice_.below(100'000));
    if (terms_.hosts_stall) stall();
    pair_.run_for(dice_.ms(50, 1500));
  }

  // One of the hosts, or both, as when they are one machine's.
  void stall() {
    const std::uint64_t who = stalls_.below(3);
    const simulator::Node::Stall stall{.time = stalls_.ms(200, stalls_.one_in(4) ? 3000 : 1000),
                                       .buffer_bytes = stalls_.one_in(2) ? 200'000u : 8'000'000u};
    if (who != 1) pair_.node_a.stall(stall);
    if (who != 0) pair_.node_b.stall(stall);
  }

  std::optional<std::string> broken() const {
    if (!flows_.all_right()) return "wrong bytes";
    for (const UdpEnd* side : {&pair_.a, &pair_.b}) {
      if (side->error) return "the peer broke the protocol";
      if (side->pool.granted_bytes() > kChangingMemory) return "too much credit";
      // A stream may write a last piece beyond its part.
      if (side->retained.used_bytes() > kChangingMemory + 256 * 1024) return "too much is kept";
    }
    return std::nullopt;
  }

  // Ends what would go on without end, and forgets what has been read to its end before.
  void end(Flow& flow) {
    flow.client_writes.total = flow.client_writes.written;
    flow.server_writes.total = flow.server_writes.written;
    for (UdpEnd* side : {&pair_.a, &pair_.b}) {
      Stream* stream = side->session.find(flow.id);
      if (!stream) continue;
      (side == &pair_.a ? flow.client_writes : flow.server_writes).pump(*stream);
      if ((side == &pair_.a ? flow.client_reads : flow.server_reads).ended) side->session.release(flow.id);
    }
    pair_.wake();
  }

  bool forgotten() const {
    return pair_.a.session.state().live_streams == 0 && pair_.b.session.state().live_streams == 0 &&
           pair_.a.retained.used_bytes() == 0 && pair_.b.retained.used_bytes() == 0;
  }

  ScheduleTerms terms_;
  Dice dice_, stalls_;
  simulator::LineConfig line_;
  std::uint16_t port_ = 2000;
  UdpPair pair_;
  FlowsOn<UdpPair> flows_;
};

}  // namespace longhaul::link::simulation
