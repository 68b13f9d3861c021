// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/questions.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::link;

namespace {
// The number in the one frame that was written.
template <class Numbered>
std::uint64_t number_in(const Buffer& out) {
  const auto parsed = parse_frame(out);
  REQUIRE(parsed.has_value());
  REQUIRE(parsed->has_value());
  CHECK((*parsed)->consumed == out.size());
  return std::get<Numbered>(*(*parsed)->frame).number;
}
}  // namespace

TEST_CASE("the answer to the latest question counts, and none before one was asked") {
  Questions questions;
  questions.on_answered(std::uint64_t{1} << 60);
  CHECK_FALSE(questions.answered());
  Buffer first, second;
  questions.ask(first);
  questions.ask(second);
  CHECK(Questions::is_question(number_in<PingFrame>(first)));
  questions.on_answered(number_in<PingFrame>(first));
  CHECK_FALSE(questions.answered());
  questions.on_answered(number_in<PingFrame>(second));
  CHECK(questions.answered());
  Buffer third;
  questions.ask(third);
  CHECK_FALSE(questions.answered());
}

TEST_CASE("the peer's latest question is answered once") {
  Questions questions;
  Buffer out;
  questions.answer(out);
  CHECK(out.empty());
  const std::uint64_t number = std::uint64_t{1} << 60;
  questions.on_asked(number + 1);
  questions.on_asked(number + 2);
  questions.answer(out);
  CHECK(number_in<PongFrame>(out) == number + 2);
  Buffer again;
  questions.answer(again);
  CHECK(again.empty());
}
