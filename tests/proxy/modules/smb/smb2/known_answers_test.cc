// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/known_answers.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

KnownAnswer answer_of(std::size_t bytes, std::uint64_t version = 0) {
  return {.here = true, .version = version, .response = Slice::copy_of(Buffer(bytes)), .waiting = {}};
}

Message waiting_query(test::AnyId id) {
  return request(Command::query_info, id, query_info_request_body({}, 5));
}

}  // namespace

TEST_CASE("an answer is known until it is forgotten, and takes memory as long") {
  KnownAnswers::Totals totals;
  KnownAnswers answers(totals);
  CHECK_FALSE(answers.find("q"));
  answers.keep("q", answer_of(100, 7));
  REQUIRE(answers.find("q"));
  CHECK(answers.find("q")->here);
  CHECK(answers.find("q")->version == 7);
  CHECK(totals.bytes == 100);
  answers.keep("q", answer_of(30, 8));
  CHECK(answers.find("q")->version == 8);
  CHECK(totals.bytes == 30);
  answers.forget("other");
  answers.forget("q");
  CHECK_FALSE(answers.find("q"));
  CHECK(totals.bytes == 0);
}

TEST_CASE("queries wait for an answer that is expected, and come out with it") {
  KnownAnswers::Totals totals;
  KnownAnswers answers(totals);
  answers.expect("q", 7);
  REQUIRE(answers.find("q"));
  CHECK_FALSE(answers.find("q")->here);
  CHECK_FALSE(answers.has_waiting());
  CHECK(answers.wait(*answers.find("q"), waiting_query(1)));
  CHECK(answers.wait(*answers.find("q"), waiting_query(2)));
  CHECK(answers.has_waiting());
  CHECK(totals.waiting == 2);
  const auto came = answers.take_expected("q");
  REQUIRE(came);
  CHECK(came->version == 7);
  REQUIRE(came->waiting.size() == 2);
  CHECK(came->waiting[0].header().message_id == 1_message);
  CHECK(totals.waiting == 0);
  CHECK_FALSE(answers.find("q"));
  CHECK_FALSE(answers.take_expected("q"));
}

TEST_CASE("an answer that is here already is not expected") {
  KnownAnswers::Totals totals;
  KnownAnswers answers(totals);
  answers.keep("q", answer_of(1));
  CHECK_FALSE(answers.take_expected("q"));
  CHECK(answers.find("q"));
}

TEST_CASE("only so many answers, and so many bytes, are kept") {
  KnownAnswers::Totals totals;
  KnownAnswers answers(totals);
  answers.keep("large", answer_of(KnownAnswers::kMostAnswerBytes + 1));
  CHECK_FALSE(answers.find("large"));
  for (std::size_t i = 0; i < KnownAnswers::kMostAnswers; ++i)
    answers.keep("q" + std::to_string(i), answer_of(1));
  answers.keep("beyond", answer_of(1));
  CHECK_FALSE(answers.find("beyond"));
  CHECK(totals.bytes == KnownAnswers::kMostAnswers);

  KnownAnswers another(totals);
  totals.bytes = KnownAnswers::kMostHeldBytes - 10;
  another.keep("q", answer_of(11));
  CHECK_FALSE(another.find("q"));
  another.keep("q", answer_of(10));
  CHECK(another.find("q"));
}

TEST_CASE("only so many queries wait, and none that is large") {
  KnownAnswers::Totals totals;
  KnownAnswers answers(totals), another(totals);
  answers.expect("q", 0);
  another.expect("q", 0);
  const Body large([](auto& out) { out.zeros(KnownAnswers::kMostWaitingBytes); });
  CHECK_FALSE(answers.wait(*answers.find("q"), request(Command::query_info, 1, large)));
  for (std::uint64_t id = 0; id < KnownAnswers::kMostWaiting; ++id)
    REQUIRE(answers.wait(*answers.find("q"), waiting_query(id)));
  CHECK_FALSE(another.wait(*another.find("q"), waiting_query(1000)));
  answers.forget("q");
  CHECK(another.wait(*another.find("q"), waiting_query(1000)));
}

TEST_CASE("a file that ends returns the queries that wait, and takes nothing any more") {
  KnownAnswers::Totals totals;
  {
    KnownAnswers answers(totals);
    answers.keep("a", answer_of(50));
    answers.expect("b", 0);
    REQUIRE(answers.wait(*answers.find("b"), waiting_query(4)));
    const auto waiting = answers.clear();
    REQUIRE(waiting.size() == 1);
    CHECK(waiting[0].header().message_id == 4_message);
    CHECK(totals.waiting == 0);
    CHECK(totals.bytes == 0);
    answers.keep("a", answer_of(50));
    CHECK(totals.bytes == 50);
  }
  CHECK(totals.bytes == 0);
}
