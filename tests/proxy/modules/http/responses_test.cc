// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/responses.h"

#include <catch2/catch.hpp>
#include <string>

using namespace longhaul;
using namespace longhaul::http;

namespace {

using Outcome = Responses::Outcome;

Slice response_slice(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

RequestHead get(std::string_view target) {
  const std::string text = "GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  return read_request(std::as_bytes(std::span(text))).value();
}

// The server's side of one connection, and what is output.
struct FromServer {
  FromServer() {
    site->wall = [] { return Seconds(1'700'000'000); };
  }

  Awaited request(std::string_view target) const {
    Awaited made;
    made.request = get(target);
    made.key = place.key_of(made.request);
    made.erasures = site->store.erasures();
    return made;
  }
  // Asks whether a stored response is current.
  Awaited question(std::string_view target) {
    constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\n";
    const auto head = read_response(std::as_bytes(std::span(kHead)));
    Stored stored = to_store(get(target), head.value(), now, site->wall());
    stored.content = {response_slice("stored")};
    stored.content_bytes = 6;
    Awaited made = request(target);
    made.asked_about = std::make_shared<const Stored>(std::move(stored));
    made.head = response_slice("as the client asked");
    return made;
  }
  Outcome take(std::string_view text) { return responses.from_server(now, response_slice(text)); }
  bool stored(std::string_view target) {
    return site->store.find(place.key_of(get(target)), get(target)) != nullptr;
  }

  // Bytes as they are; "|" is the end.
  std::string client() const {
    std::string text;
    for (const modules::Output& each : out) {
      if (const auto* bytes = std::get_if<modules::ToLan>(&each))
        text.append(reinterpret_cast<const char*>(bytes->bytes.bytes().data()), bytes->bytes.size());
      if (std::holds_alternative<modules::EndLan>(each)) text += '|';
    }
    return text;
  }
  std::string server() const {
    std::string text;
    for (const modules::Output& each : out)
      if (const auto* bytes = std::get_if<modules::ToStream>(&each))
        text.append(reinterpret_cast<const char*>(bytes->bytes.bytes().data()), bytes->bytes.size());
    return text;
  }

  std::shared_ptr<Site> site = std::make_shared<Site>(std::uint64_t{64} << 20);
  Place place{{}, {}};
  Receiving receiving{site, place, {}};
  std::deque<modules::Output> out;
  ToClient to_client{out};
  ToServer to_server{out};
  LocalAnswers answers{site, place, receiving, to_client};
  Responses responses{site, place, answers, to_client, to_server};
  modules::TimePoint now{};
};

const std::string kCached = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\nabc";
const std::string kNotModified = "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n";
const std::string kOther = "HTTP/1.1 304 Not Modified\r\nETag: \"2\"\r\n\r\n";

}  // namespace

TEST_CASE("http responses: they pass and are stored, however they are split") {
  const std::string both = kCached + "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n!";
  for (std::size_t at = 0; at <= both.size(); ++at) {
    FromServer one;
    CHECK(one.responses.is_idle());
    one.responses.await(one.request("/a"));
    one.responses.await(one.request("/b"));
    CHECK_FALSE(one.responses.is_idle());
    CHECK(one.take(both.substr(0, at)) == Outcome::goes_on);
    CHECK(one.take(both.substr(at)) == Outcome::goes_on);
    CHECK(one.client() == both);
    CHECK(one.stored("/a"));
    CHECK_FALSE(one.stored("/b"));
    CHECK(one.responses.is_idle());
    CHECK(one.responses.held_bytes() == 0);
    CHECK(one.responses.state_bytes() == 0);
  }
}

TEST_CASE("http responses: nothing is stored if it is off, or after a request with a body") {
  FromServer one;
  const bool off = GENERATE(true, false);
  if (off) {
    one.responses.use(false);
    one.responses.await(one.request("/a"));
  } else {
    Awaited put = one.request("/a");
    put.has_body = true;
    one.responses.await(put);
    one.responses.await(one.request("/b"));
    REQUIRE(one.take(kCached) == Outcome::goes_on);
  }
  CHECK(one.take(kCached) == Outcome::goes_on);
  CHECK_FALSE(one.stored("/a"));
  CHECK_FALSE(one.stored("/b"));
}

TEST_CASE("http responses: a response whose memory was needed passes, but is not stored") {
  FromServer one;
  one.responses.await(one.request("/a"));
  REQUIRE(one.take(kCached.substr(0, kCached.size() - 1)) == Outcome::goes_on);
  CHECK(one.site->pending_bytes > 0);
  one.responses.give_up_memory();
  CHECK(one.site->pending_bytes == 0);
  CHECK(one.take("c") == Outcome::goes_on);
  CHECK(one.client() == kCached);
  CHECK_FALSE(one.stored("/a"));
}

TEST_CASE("http responses: a stored response that the server confirms is sent in full") {
  FromServer one;
  one.responses.await(one.question("/a"));
  CHECK(one.take(kNotModified) == Outcome::goes_on);
  CHECK(one.client().ends_with("stored"));
  CHECK(one.server().empty());
  CHECK(one.responses.is_idle());
}

TEST_CASE(
    "http responses: what the server has changed is asked for as the client did, if nothing has followed") {
  SECTION("nothing has") {
    FromServer one;
    one.responses.await(one.question("/a"));
    REQUIRE(one.take(kOther) == Outcome::goes_on);
    CHECK(one.server() == "as the client asked");
    CHECK(one.client().empty());
    CHECK(one.responses.awaits_any());
    REQUIRE(one.take(kCached) == Outcome::goes_on);
    CHECK(one.client() == kCached);
  }
  SECTION("another request has") {
    FromServer one;
    one.responses.await(one.question("/a"));
    one.responses.await(one.request("/b"));
    CHECK(one.take(kOther) == Outcome::failed);
  }
  SECTION("unread requests have") {
    FromServer one;
    one.responses.await(one.question("/a"));
    one.to_server.step_aside({}, {});
    CHECK(one.take(kOther) == Outcome::failed);
  }
  SECTION("the end has") {
    FromServer one;
    one.responses.await(one.question("/a"));
    one.to_server.end();
    CHECK(one.take(kOther) == Outcome::failed);
  }
}

TEST_CASE("http responses: what is not understood passes, unless a question of this half waits") {
  const std::string strange = "no response at all\r\n\r\n";
  FromServer one;
  one.responses.await(one.request("/a"));
  SECTION("no question") {
    CHECK(one.take(strange.substr(0, 5)) == Outcome::goes_on);
    CHECK_FALSE(one.responses.passes());
    CHECK(one.take(strange.substr(5)) == Outcome::goes_on);
    CHECK(one.responses.passes());
    CHECK_FALSE(one.responses.is_idle());
    CHECK(one.take("more") == Outcome::goes_on);
    CHECK(one.client() == strange + "more");
  }
  SECTION("a later one is a question") {
    one.responses.await(one.question("/b"));
    CHECK(one.take(strange) == Outcome::failed);
    CHECK(one.client().empty());
  }
  SECTION("the question whose response has begun") {
    FromServer other;
    other.responses.await(other.question("/a"));
    const std::string begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    REQUIRE(other.take(begun) == Outcome::goes_on);
    CHECK(other.take("not a size\r\n") == Outcome::goes_on);
    CHECK(other.responses.passes());
    CHECK(other.client() == begun + "not a size\r\n");
  }
}

TEST_CASE(
    "http responses: after enough local content they wait until the client has read, and so does the end") {
  FromServer one;
  Awaited large = one.question("/large");
  Stored much = *large.asked_about;
  much.content = {Slice::copy_of(Buffer(ToClient::kMostAnsweredBytes))};
  much.content_bytes = ToClient::kMostAnsweredBytes;
  large.asked_about = std::make_shared<const Stored>(std::move(much));
  one.responses.await(large);
  one.responses.await(one.request("/a"));
  REQUIRE(one.take(kNotModified + kCached) == Outcome::goes_on);
  CHECK(one.responses.held_bytes() == kCached.size());
  one.responses.server_ended();
  CHECK_FALSE(one.client().ends_with(kCached));
  one.out.clear();
  CHECK(one.responses.on_room() == Outcome::goes_on);
  CHECK(one.client() == kCached + "|");
  CHECK(one.responses.on_room() == Outcome::goes_on);
}

TEST_CASE("http responses: an end inside a response reaches the client, and nothing of it is stored") {
  FromServer one;
  one.responses.await(one.request("/a"));
  const std::string torn = kCached.substr(0, kCached.size() - 1);
  REQUIRE(one.take(torn) == Outcome::goes_on);
  one.responses.server_ended();
  CHECK(one.client() == torn + "|");
  CHECK_FALSE(one.stored("/a"));
  CHECK(one.site->pending_bytes == 0);
  CHECK_FALSE(one.responses.is_idle());
}

TEST_CASE("http responses: those that nobody reads any more pass") {
  FromServer one;
  one.responses.pass();
  CHECK(one.take(kCached) == Outcome::goes_on);
  CHECK(one.client() == kCached);
  CHECK_FALSE(one.stored("/a"));
}
