// SPDX-License-Identifier: Apache-2.0
// Both ends of the transactions over UDP, joined by a line in virtual time that loses, doubles and reorders
// by a seed.
#pragma once
#include <functional>
#include <map>
#include <random>

#include "tools/txn/exchange.h"

namespace longhaul::txn {

struct LineOptions {
  std::uint32_t seed = 1;
  Duration delay = std::chrono::milliseconds{20};  // each way
  double loss = 0;
  double doubled = 0;
  double late = 0;  // share that is overtaken by what follows
};

class SimulatedPair {
 public:
  // Says of each datagram, counted per direction from 0, whether it is lost; beside what the options lose.
  using Drop = std::function<bool(Direction from, unsigned number, const Datagram&)>;

  SimulatedPair(const Workload& workload, LineOptions line, Drop drop = {})
      : requester(workload, Family::ipv4),
        responder(workload, Family::ipv4),
        line_(line),
        drop_(std::move(drop)),
        random_(line.seed) {}

  // False: it did not come to an end within a day.
  bool transact(std::uint32_t number) {
    requester.begin(number);
    const TimePoint give_up = now + std::chrono::hours{24};
    for (;;) {
      send_all(requester, Direction::request);
      send_all(responder, Direction::response);
      if (requester.done()) return true;
      auto next = under_way_.empty() ? TimePoint::max() : under_way_.begin()->first;
      for (const Exchange* side : {static_cast<Exchange*>(&requester), static_cast<Exchange*>(&responder)})
        if (const auto timeout = side->next_timeout()) next = std::min(next, *timeout);
      if (next > give_up) return false;
      now = std::max(now, next);
      while (!under_way_.empty() && under_way_.begin()->first <= now) {
        const auto [from, bytes] = under_way_.begin()->second;
        under_way_.erase(under_way_.begin());
        if (from == Direction::request)
          responder.receive(now, bytes);
        else
          requester.receive(now, bytes);
      }
      requester.on_timeout(now);
      responder.on_timeout(now);
    }
  }

  TimePoint now{std::chrono::hours{1}};
  Requester requester;
  Responder responder;

 private:
  bool chance(double share) { return std::uniform_real_distribution<>{}(random_) < share; }

  void send_all(Exchange& side, Direction from) {
    Buffer out;
    while (side.poll_transmit(now, out)) {
      const auto number = numbers_[from == Direction::request ? 0 : 1]++;
      if (drop_ && drop_(from, number, *parse_datagram(out))) continue;
      for (int copies = chance(line_.doubled) ? 2 : 1; copies > 0; --copies) {
        if (chance(line_.loss)) continue;
        const Duration delay = chance(line_.late) ? 3 * line_.delay : line_.delay;
        under_way_.emplace(now + delay, std::pair{from, out});
      }
    }
  }

  LineOptions line_;
  Drop drop_;
  std::mt19937 random_;
  std::array<unsigned, 2> numbers_{};
  std::multimap<TimePoint, std::pair<Direction, Buffer>> under_way_;
};

}  // namespace longhaul::txn
