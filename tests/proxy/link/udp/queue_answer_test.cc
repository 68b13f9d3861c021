// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/queue_answer.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using AnswerKind = QueueAnswer::Kind;

namespace {
// Longer than the sender makes it itself.
constexpr Duration kLongQueue = 80ms;

// Once it was seen without a queue.
struct EmptyLine : PhaseLine {
  EmptyLine() { deliver(0ms, kPhaseRate, 300ms); }
};
}  // namespace

TEST_CASE("a queue that came at once, on a line as fast as ever, drains, and the rate stays") {
  EmptyLine at;
  at.deliver(kLongQueue, kPhaseRate, 300ms);
  const auto measured = QueueAnswer::to_measured(at.now, at.line);
  REQUIRE(measured);
  CHECK(measured->kind == AnswerKind::standstill);
  const auto excess = QueueAnswer::to_excess(at.now, at.line);
  REQUIRE(excess);
  CHECK(excess->kind == AnswerKind::standstill);
  const auto doubt = QueueAnswer::to_ended_doubt(at.now, at.line);
  REQUIRE(doubt);
  CHECK(doubt->kind == AnswerKind::standstill);
}

TEST_CASE("standstills again and again are not believed") {
  EmptyLine at;
  at.deliver(kLongQueue, kPhaseRate, 300ms);
  for (int i = 0; i < 8; ++i) {
    REQUIRE(QueueAnswer::to_measured(at.now, at.line));
    at.line.standing.on_standstill();
  }
  CHECK_FALSE(QueueAnswer::to_measured(at.now, at.line));
  CHECK_FALSE(QueueAnswer::to_ended_doubt(at.now, at.line));
  CHECK(QueueAnswer::to_excess(at.now, at.line)->kind == AnswerKind::ease);
}

TEST_CASE("a queue that grew on a line that became slower is given way to, at the line's rate") {
  EmptyLine at;
  at.grow(kLongQueue, kPhaseRate / 2);
  at.deliver(kLongQueue, kPhaseRate / 2, 300ms);
  const auto answer = QueueAnswer::to_measured(at.now, at.line);
  REQUIRE(answer);
  CHECK(answer->kind == AnswerKind::give_way);
  CHECK(answer->rate == Approx(kPhaseRate / 2).epsilon(0.05));
  CHECK_FALSE(QueueAnswer::to_ended_doubt(at.now, at.line));
  for (int i = 0; i < 2; ++i) at.line.standing.on_gave_way(at.now);
  CHECK_FALSE(QueueAnswer::to_measured(at.now, at.line));
}

TEST_CASE("a queue no longer than the sender makes it needs no answer to a measurement") {
  EmptyLine at;
  at.grow(kLongQueue / 2, kPhaseRate / 2);
  at.deliver(kLongQueue / 2, kPhaseRate / 2, 300ms);
  CHECK_FALSE(QueueAnswer::to_measured(at.now, at.line));
}

TEST_CASE("the sender eases for a queue that grew, and waits for the rate of one that came at once") {
  EmptyLine grown, sudden;
  grown.grow(kLongQueue, kPhaseRate);
  CHECK(QueueAnswer::to_excess(grown.now, grown.line)->kind == AnswerKind::ease);
  sudden.deliver(kLongQueue, kPhaseRate, 45ms);
  REQUIRE(sudden.line.overflows());
  CHECK_FALSE(QueueAnswer::to_excess(sudden.now, sudden.line));
}

TEST_CASE("a queue that persists is given way to twice, and then followed") {
  EmptyLine at;
  at.grow(kLongQueue, kPhaseRate / 2);
  CHECK_FALSE(QueueAnswer::to_standing(at.now, at.line));  // it may leave again
  at.deliver(kLongQueue, kPhaseRate / 2, 2s);
  for (int i = 0; i < 2; ++i) {
    const auto answer = QueueAnswer::to_standing(at.now, at.line);
    REQUIRE(answer);
    CHECK(answer->kind == AnswerKind::give_way);
    CHECK(answer->rate == Approx(kPhaseRate / 2).epsilon(0.05));
    at.line.standing.on_gave_way(at.now);
  }
  CHECK(QueueAnswer::to_standing(at.now, at.line)->kind == AnswerKind::follow);
}

TEST_CASE("giving way never raises the rate") {
  EmptyLine at;
  at.grow(kLongQueue, 2 * kPhaseRate);
  at.deliver(kLongQueue, 2 * kPhaseRate, 2s);
  const auto answer = QueueAnswer::to_standing(at.now, at.line);
  REQUIRE(answer);
  CHECK(answer->rate == kPhaseRate);
}
