// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/answer_watch.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using Answer = AnswerWatch::Answer;

TEST_CASE("a peer that does not answer over UDP is reported once, after ten seconds") {
  AnswerWatch watch;
  CHECK_FALSE(watch.step(Answer::wanted, kStart));
  CHECK_FALSE(watch.next_timeout());  // no keys yet
  watch.begin(kStart);
  watch.begin(kStart + 5s);  // new keys of the same session
  CHECK_FALSE(watch.step(Answer::wanted, kStart + 6s));
  CHECK((watch.next_timeout() == kStart + 10s));
  CHECK(watch.step(Answer::wanted, kStart + 10s));
  CHECK(watch.unanswered());
  CHECK_FALSE(watch.next_timeout());
  CHECK_FALSE(watch.step(Answer::wanted, kStart + 11s));
  CHECK(watch.unanswered());
  SECTION("until it answers") {
    CHECK_FALSE(watch.step(Answer::works, kStart + 12s));
    CHECK_FALSE(watch.unanswered());
  }
  SECTION("and again in the next session") {
    watch.end();
    CHECK_FALSE(watch.unanswered());
    watch.begin(kStart + 1min);
    CHECK(watch.step(Answer::wanted, kStart + 1min + 10s));
  }
}

TEST_CASE("a peer that has answered in this session is not reported, whatever follows") {
  AnswerWatch watch;
  watch.begin(kStart);
  CHECK_FALSE(watch.step(Answer::works, kStart + 1s));
  CHECK_FALSE(watch.step(Answer::wanted, kStart + 1h));
  CHECK_FALSE(watch.next_timeout());
  CHECK_FALSE(watch.unanswered());
}

TEST_CASE("nothing is reported while UDP is not wanted") {
  AnswerWatch watch;
  watch.begin(kStart);
  CHECK_FALSE(watch.step(Answer::unwanted, kStart + 1h));
  CHECK_FALSE(watch.next_timeout());
  CHECK_FALSE(watch.unanswered());
}
