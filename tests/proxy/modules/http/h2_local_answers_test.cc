// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/local_answers.h"

#include "proxy/modules/http/h2/blocks.h"
#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

using Found = LocalAnswers::Found;

// The near half of one connection, and a server whose responses it is given.
struct Answering {
  std::shared_ptr<Site> site = std::make_shared<Site>(1 << 20);
  Place place{{}, "a.corp"};
  Receiving receiving{site, place, {}};
  LocalAnswers answers{place, site, &receiving};
  LocalAnswers::TimePoint now{std::chrono::hours(1)};
  Fields block;  // of the last answer

  Answering() {
    site->wall = [] { return Seconds(1'700'000'000); };
  }
  std::unique_ptr<Exchange> asks(const std::string& method = "GET", std::vector<Field> fields = {}) const {
    auto exchange = std::make_unique<Exchange>();
    exchange->client = 1;
    exchange->request = RequestHead{.method = method, .target = "/page", .minor = 1, .fields = {}};
    exchange->request->fields.add({"host", "a.corp"});
    for (Field& field : fields) exchange->request->fields.add(std::move(field));
    answers.begin(*exchange);
    return exchange;
  }
  static ResponseHead says(unsigned status, std::vector<Field> fields) {
    ResponseHead head{.minor = 1, .status = status, .phrase = {}, .fields = {}};
    for (Field& field : fields) head.fields.add(std::move(field));
    return head;
  }
  // A whole response to that request; true: it is stored as it comes.
  bool responds(Exchange& exchange, const ResponseHead& head, const std::string& content) {
    answers.note(exchange, head);
    answers.begin_to_store(now, exchange, head);
    if (!exchange.incoming) return false;
    REQUIRE(exchange.incoming->add(bytes_of(content)));
    exchange.incoming->store();
    return true;
  }
  Found find(Exchange& exchange) { return answers.find(now, exchange, block); }
  static std::string content(Exchange& exchange) {
    std::string text;
    while (exchange.down.bytes() > 0) {
      const Slice piece = exchange.down.pieces.front();
      text += text_of(piece.bytes());
      exchange.down.pieces.drop_until(exchange.down.pieces.begin_offset() + piece.size());
    }
    return text;
  }
};

const ResponseHead kForAMinute = Answering::says(200, {{"cache-control", "max-age=60"}, {"etag", "\"1\""}});

TEST_CASE(
    "http/2 local answers: a stored response answers until it is stale, then the server is asked about it") {
  Answering one;
  auto first = one.asks();
  CHECK(one.find(*first) == Found::nothing);
  CHECK_FALSE(first->asked_about);
  REQUIRE(one.responds(*first, kForAMinute, "content"));
  auto second = one.asks();
  REQUIRE(one.find(*second) == Found::answer);
  CHECK(one.block.value(":status") == "200");
  CHECK(second->responded);
  CHECK(second->is_from_store);
  CHECK(second->down.ended);
  CHECK(Answering::content(*second) == "content");
  CHECK(one.answers.counters().cache_hits == 1);
  CHECK(one.answers.counters().cache_bytes == 7);
  one.now += std::chrono::seconds(61);
  auto third = one.asks();
  CHECK(one.find(*third) == Found::nothing);
  CHECK(third->asked_about);
  CHECK_FALSE(third->responded);
}

TEST_CASE("http/2 local answers: a confirmed response is the answer, and fresh again") {
  Answering one;
  auto first = one.asks();
  REQUIRE(one.responds(*first, kForAMinute, "content"));
  one.now += std::chrono::seconds(61);
  auto second = one.asks();
  REQUIRE(one.find(*second) == Found::nothing);
  REQUIRE(second->asked_about);
  REQUIRE(one.answers.take_not_modified(
              one.now, *second, Answering::says(304, {{"etag", "\"1\""}, {"cache-control", "max-age=60"}}),
              one.block) == Found::answer);
  CHECK(one.block.value(":status") == "200");
  CHECK(Answering::content(*second) == "content");
  CHECK(one.answers.counters().cache_validations == 1);
  auto third = one.asks();
  CHECK(one.find(*third) == Found::answer);
}

TEST_CASE("http/2 local answers: a confirmation of other content is no answer, and nothing stays stored") {
  Answering one;
  auto first = one.asks();
  REQUIRE(one.responds(*first, kForAMinute, "content"));
  one.now += std::chrono::seconds(61);
  auto second = one.asks();
  REQUIRE(one.find(*second) == Found::nothing);
  CHECK(one.answers.take_not_modified(one.now, *second, Answering::says(304, {{"etag", "\"2\""}}),
                                      one.block) == Found::nothing);
  CHECK_FALSE(second->asked_about);
  CHECK_FALSE(second->responded);
  auto third = one.asks();
  CHECK(one.find(*third) == Found::nothing);
  CHECK_FALSE(third->asked_about);
}

TEST_CASE("http/2 local answers: a client that has the response, or wants a part of it, gets no more") {
  Answering one;
  auto first = one.asks();
  REQUIRE(one.responds(*first, kForAMinute, "0123456789"));
  auto has_it = one.asks("GET", {{"if-none-match", "\"1\""}});
  REQUIRE(one.find(*has_it) == Found::answer);
  CHECK(one.block.value(":status") == "304");
  CHECK(Answering::content(*has_it).empty());
  auto part = one.asks("GET", {{"range", "bytes=2-4"}});
  REQUIRE(one.find(*part) == Found::answer);
  CHECK(one.block.value(":status") == "206");
  CHECK(Answering::content(*part) == "234");
  CHECK(one.answers.counters().cache_bytes == 3);
  auto behind = one.asks("GET", {{"range", "bytes=20-40"}});
  CHECK(one.find(*behind) == Found::nothing);
}

TEST_CASE("http/2 local answers: a change at the server makes void what is stored") {
  Answering one;
  auto first = one.asks();
  REQUIRE(one.responds(*first, kForAMinute, "content"));
  auto coming = one.asks();  // before the change
  auto change = one.asks("POST");
  one.answers.note(*change, Answering::says(200, {}));
  auto second = one.asks();
  CHECK(one.find(*second) == Found::nothing);
  // Nor is a response stored that was asked for before.
  CHECK(one.responds(*coming, kForAMinute, "old content"));
  auto third = one.asks();
  CHECK(one.find(*third) == Found::nothing);
}

TEST_CASE(
    "http/2 local answers: the far half, one that is switched off, and requests with content store nothing") {
  Answering one;
  auto request = one.asks();
  LocalAnswers far(one.place, one.site, nullptr);
  CHECK_FALSE(far.is_used());
  far.begin_to_store(one.now, *request, kForAMinute);
  CHECK_FALSE(request->incoming);
  one.answers.use(false);
  CHECK_FALSE(one.responds(*request, kForAMinute, "content"));
  one.answers.use(true);
  request->asks = true;
  CHECK_FALSE(one.responds(*request, kForAMinute, "content"));
}

}  // namespace
}  // namespace longhaul::http::h2
