// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/opening_questions.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::ahead {
namespace {

using Kind = OpeningQuestions::Kind;

QuestionHabits habits_of(std::initializer_list<std::string> questions) {
  QuestionHabits habits;
  for (const std::string& question : questions) habits.asked(Kind::data, question);
  return habits;
}
bool all(const std::string&) { return true; }

}  // namespace

TEST_CASE("the likely queries that are allowed are sent with an open, and known until it is answered") {
  OpeningQuestions openings(habits_of({"size", "volume"}));
  const auto sent = openings.opening(1_number, Kind::data,
                                     [](const std::string& question) { return question != "volume"; });
  REQUIRE(sent.size() == 1);
  CHECK(sent[0] == "size");
  CHECK(openings.opening(2_number, Kind::directory, all).empty());
  const auto opened = openings.opened(1_number);
  REQUIRE(opened);
  CHECK(opened->kind == Kind::data);
  CHECK(opened->questions == std::vector<std::string>{"size"});
  CHECK_FALSE(openings.opened(1_number));
  openings.answered(2_number);
  CHECK_FALSE(openings.opened(2_number));
}

TEST_CASE("queries that were sent already are those of their open, in place of an earlier one's") {
  OpeningQuestions openings(habits_of({"size"}));
  (void)openings.opening(1_number, Kind::data, all);
  openings.opening_with(1_number, {.kind = Kind::attributes, .questions = {"times"}});
  const auto opened = openings.opened(1_number);
  REQUIRE(opened);
  CHECK(opened->kind == Kind::attributes);
  CHECK(opened->questions == std::vector<std::string>{"times"});
}

TEST_CASE("with too many opens without an answer nothing is sent, until one is answered") {
  OpeningQuestions openings(habits_of({"size"}));
  constexpr twin::MessageNumber kLast{OpeningQuestions::kMostOpening};
  for (twin::MessageNumber number; number < kLast; ++number)
    REQUIRE_FALSE(openings.opening(number, Kind::data, all).empty());
  CHECK(openings.opening(kLast, Kind::data, all).empty());
  CHECK_FALSE(openings.opened(kLast));
  openings.answered(7_number);
  CHECK_FALSE(openings.opening(kLast, Kind::data, all).empty());
}

}  // namespace longhaul::ahead
