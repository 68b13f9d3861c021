// SPDX-License-Identifier: Apache-2.0
// The rules of RFC 9111, one by one.
#include <catch2/catch.hpp>

#include "proxy/modules/http/body.h"
#include "proxy/modules/http/caching.h"

using namespace longhaul;
using namespace longhaul::http;
using namespace std::chrono_literals;

namespace {

constexpr link::TimePoint kNow{std::chrono::hours(1)};
constexpr Seconds kWall = 1'700'000'000;  // Tue, 14 Nov 2023 22:13:20 GMT

RequestHead get(std::string_view fields = "", std::string_view method = "GET") {
  const std::string text = std::string(method) + " /a HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n";
  return read_request(std::as_bytes(std::span(text))).value();
}
ResponseHead ok(std::string_view fields, std::string_view first = "HTTP/1.1 200 OK") {
  const std::string text = std::string(first) + "\r\n" + std::string(fields) + "\r\n";
  return read_response(std::as_bytes(std::span(text))).value();
}
bool is_stored(std::string_view fields, std::string_view asked = "") { return may_store(get(asked), ok(fields), kWall); }
Stored stored(std::string_view fields, std::string_view asked = "") { return to_store(get(asked), ok(fields), kNow, kWall); }
bool is_fresh(std::string_view fields, std::chrono::seconds later, std::string_view asked = "") {
  return is_fresh_for(stored(fields), get(asked), kNow + later);
}

}  // namespace

TEST_CASE("http cache: stores what says how long it is fresh or has a tag, and nothing that forbids it") {
  CHECK(is_stored("Cache-Control: max-age=60\r\n"));
  CHECK(is_stored("cache-control: PUBLIC , Max-Age=\"60\"\r\n"));
  CHECK(is_stored("ETag: \"a\"\r\n"));
  CHECK(is_stored("Date: Tue, 14 Nov 2023 22:13:20 GMT\r\nExpires: Tue, 14 Nov 2023 22:14:20 GMT\r\n"));
  CHECK_FALSE(is_stored(""));
  constexpr const char* kMade = "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n";
  CHECK(is_stored(kMade + std::string("Last-Modified: Tue, 14 Nov 2023 22:12:20 GMT\r\n")));
  // A file that was changed a moment ago may change again in that second.
  CHECK_FALSE(is_stored(kMade + std::string("Last-Modified: Tue, 14 Nov 2023 22:12:21 GMT\r\n")));
  CHECK_FALSE(is_stored(kMade + std::string("Last-Modified: yesterday\r\n")));
  CHECK_FALSE(is_stored("Last-Modified: Tue, 14 Nov 2023 22:12:20 GMT\r\n"));
  CHECK_FALSE(is_stored("ETag: a\r\n"));
  CHECK_FALSE(is_stored("Expires: 0\r\n"));
  CHECK(is_stored("Cache-Control: must-revalidate, max-age=60\r\n", "Authorization: Basic eDp5\r\n"));
  CHECK(is_stored("Cache-Control: public, max-age=60\r\n", "Authorization: Basic eDp5\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60\r\nSurrogate-Control: max-age=60\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60, no-store\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60\r\nCache-Control: private\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60, private=\"set-cookie\"\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60\r\nVary: accept, *\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60\r\n", "Authorization: Basic eDp5\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60\r\n", "Cache-Control: no-store\r\n"));
  CHECK_FALSE(is_stored("Cache-Control: max-age=60\r\n", "Range: bytes=0-1\r\n"));
  CHECK_FALSE(may_store(get("", "POST"), ok("Cache-Control: max-age=60\r\n"), kWall));
  CHECK_FALSE(may_store(get(), ok("Cache-Control: max-age=60\r\n", "HTTP/1.1 206 Partial Content"), kWall));
  CHECK_FALSE(may_store(get(), ok("ETag: \"a\"\r\n", "HTTP/1.1 404 Not Found"), kWall));
  CHECK(may_store(get(), ok("Cache-Control: max-age=60\r\n", "HTTP/1.1 404 Not Found"), kWall));
}

TEST_CASE("http cache: is fresh for as long as the response says, counted from where it was made") {
  CHECK(is_fresh("Cache-Control: max-age=60\r\n", 59s));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60\r\n", 60s));
  CHECK(is_fresh("Cache-Control: max-age=10, s-maxage=60\r\n", 59s));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60, max-age=10\r\n", 10s));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60x\r\n", 0s));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=-1\r\n", 0s));
  CHECK(is_fresh("Cache-Control: max-age=99999999999\r\n", 24h));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60, no-cache\r\n", 0s));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60\r\nAge: 60\r\n", 0s));
  for (const char* age : {"abc", "-1", "1.0", "1;a=b", "0, 0", ""})
    CHECK_FALSE(is_fresh("Cache-Control: max-age=60\r\nAge: " + std::string(age) + "\r\n", 0s));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60\r\nDate: Tue, 14 Nov 2023 22:12:20 GMT\r\n", 0s));
  CHECK(is_fresh("Cache-Control: max-age=60\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n", 59s));
  CHECK_FALSE(is_fresh("Date: Tue, 14 Nov 2023 22:13:20 GMT\r\nExpires: tomorrow\r\n", 0s));
  CHECK(date_of("Tuesday, 14-Nov-23 22:13:20 GMT") == kWall);
  CHECK(date_of("Tue Nov 14 22:13:20 2023") == kWall);
}

TEST_CASE("http cache: the client may ask for more than fresh") {
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60\r\n", 0s, "Cache-Control: no-cache\r\n"));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60\r\n", 0s, "Pragma: no-cache\r\n"));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60\r\n", 11s, "Cache-Control: max-age=10\r\n"));
  CHECK_FALSE(is_fresh("Cache-Control: max-age=60\r\n", 11s, "Cache-Control: min-fresh=50\r\n"));
  CHECK(is_fresh("Cache-Control: max-age=60\r\n", 10s, "Cache-Control: min-fresh=50\r\n"));
}

TEST_CASE("http cache: answers requests that ask for nothing special") {
  CHECK(may_answer(get()));
  CHECK(may_answer(get("If-None-Match: \"a\"\r\nIf-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n")));
  for (const char* field : {"If-Match: \"a\"\r\n", "If-Range: \"a\"\r\nRange: bytes=0-1\r\n", "Cache-Control: no-store\r\n",
                            "If-Unmodified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n",
                            "Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n", "Upgrade: websocket\r\n"})
    CHECK_FALSE(may_answer(get(field)));
  CHECK_FALSE(may_answer(get("", "HEAD")));
}

TEST_CASE("http cache: a Host that is no name of a server has no answer and is not stored") {
  const auto of_host = [](std::string host) {
    RequestHead request{.method = "GET", .target = "/a", .minor = 1, .fields = {}};
    request.fields.add({"Host", std::move(host)});
    return request;
  };
  for (const char* host : {"x", "x:80", "[::1]:80"}) {
    CHECK(may_answer(of_host(host)));
    CHECK(may_store(of_host(host), ok("ETag: \"a\"\r\n"), kWall));
  }
  for (const std::string& host : {std::string("tls x x"), std::string("x\ty"), std::string("x\x7f"), std::string("x\0y", 3)}) {
    CHECK_FALSE(may_answer(of_host(host)));
    CHECK_FALSE(may_store(of_host(host), ok("ETag: \"a\"\r\n"), kWall));
  }
}

TEST_CASE("http cache: with credentials only what the server declares to be for all") {
  CHECK(matches(stored("Cache-Control: public, max-age=60\r\n"), get("Authorization: x\r\n")));
  CHECK(matches(stored("Cache-Control: s-maxage=60\r\n"), get("Authorization: x\r\n")));
  CHECK_FALSE(matches(stored("Cache-Control: max-age=60\r\n"), get("Authorization: x\r\n")));
}

TEST_CASE("http cache: knows what the client has by tag, else by date") {
  const Stored page = stored("ETag: \"a\"\r\nLast-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
  CHECK(is_at_client(page, get("If-None-Match: \"b\", W/\"a\"\r\n")));
  CHECK(is_at_client(page, get("If-None-Match: *\r\n")));
  CHECK_FALSE(is_at_client(page, get("If-None-Match: \"b\"\r\nIf-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n")));
  CHECK(is_at_client(page, get("If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n")));
  CHECK_FALSE(is_at_client(page, get("If-Modified-Since: Tue, 14 Nov 2023 22:13:19 GMT\r\n")));
  CHECK_FALSE(is_at_client(page, get("If-Modified-Since: yesterday\r\n")));
  CHECK_FALSE(is_at_client(page, get()));
}

TEST_CASE("http cache: Vary chooses by the fields that the response names") {
  const Stored of_gzip = stored("ETag: \"a\"\r\nVary: Accept-Encoding\r\n", "Accept-Encoding: gzip\r\n");
  CHECK(matches(of_gzip, get("accept-encoding: gzip\r\n")));
  CHECK_FALSE(matches(of_gzip, get("Accept-Encoding: br\r\n")));
  CHECK_FALSE(matches(of_gzip, get()));
  CHECK(matches(stored("Vary: A\r\n", "A: x,y\r\n"), get("A: x ,  y\r\n")));
}

TEST_CASE("http cache: a Vary of more fields than are compared for each request is not stored") {
  const auto vary_of = [](int names) {
    std::string line = "ETag: \"a\"\r\nVary: ";
    for (int i = 0; i < names; ++i) line += "X-" + std::to_string(i) + ", ";
    return line + "\r\n";
  };
  CHECK(is_stored(vary_of(16)));
  CHECK(stored(vary_of(16)).vary.size() == 16);
  CHECK_FALSE(is_stored(vary_of(17)));
  CHECK(stored(vary_of(5000)).vary.empty());
  // Each name counts once, however it is written.
  std::string repeated = "ETag: \"a\"\r\nVary: ";
  for (int i = 0; i < 1000; ++i) repeated += i % 2 == 0 ? "accept," : "ACCEPT , origin,";
  repeated += "\r\n";
  CHECK(is_stored(repeated));
  const Stored once = stored(repeated, "Accept: a\r\n");
  REQUIRE(once.vary.size() == 2);
  CHECK(matches(once, get("Accept: a\r\n")));
  CHECK_FALSE(matches(once, get("Accept: b\r\n")));
}

TEST_CASE("http cache: a validation renews the fields and leaves the content's alone") {
  const Stored old = stored("ETag: \"a\"\r\nCache-Control: max-age=60\r\nContent-Encoding: gzip\r\nAge: 5\r\nX: 1\r\n");
  const auto later = kNow + 100s;
  const auto fresh = validated(old, ok("ETag: W/\"a\"\r\nCache-Control: max-age=9\r\nContent-Encoding: br\r\nX: 2\r\n",
                                       "HTTP/1.1 304 Not Modified"), later, kWall + 100);
  REQUIRE(fresh);
  CHECK(fresh->fields.value("content-encoding") == "gzip");
  CHECK(fresh->fields.value("x") == "2");
  CHECK(fresh->age(later) == 0);
  CHECK(fresh->lifetime == 9);
  CHECK_FALSE(validated(old, ok("ETag: \"b\"\r\n", "HTTP/1.1 304 Not Modified"), later, kWall));
}

TEST_CASE("http cache: without a tag the server is asked by date, and a 304 must speak of the same one") {
  const std::string changed = "Last-Modified: Tue, 14 Nov 2023 20:00:00 GMT\r\n";
  const Stored dated = stored("Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n" + changed);
  CHECK(dated.can_be_asked_about());
  CHECK(question_about(dated) == "If-Modified-Since: Tue, 14 Nov 2023 20:00:00 GMT\r\n");
  CHECK(question_about(stored("ETag: \"a\"\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n" + changed)) ==
        "If-None-Match: \"a\"\r\n");
  const auto answered = [&](const std::string& fields) {
    return validated(dated, ok(fields, "HTTP/1.1 304 Not Modified"), kNow, kWall);
  };
  CHECK(answered("").has_value());
  CHECK(answered(changed + "Cache-Control: max-age=9\r\n")->lifetime == 9);
  CHECK(answered(changed)->last_modified == dated.last_modified);
  CHECK_FALSE(answered("Last-Modified: Tue, 14 Nov 2023 20:00:01 GMT\r\n"));
  CHECK_FALSE(answered("ETag: \"a\"\r\n"));
}

TEST_CASE("http head: what two programs could read in two ways is an error") {
  const auto reads = [](std::string_view text) { return read_request(std::as_bytes(std::span(text))).has_value(); };
  CHECK(reads("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  for (const char* text : {"GET / HTTP/1.1\nHost: a\n\r\n\r\n", "GET /  HTTP/1.1\r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
                           "GET / HTTP/1.1\r\nA : b\r\n\r\n", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
                           "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                           " GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"})
    CHECK_FALSE(reads(text));
  const auto framed = [](std::string_view fields) { return framing_of(get(fields)).has_value(); };
  CHECK(framed("Content-Length: 5\r\n"));
  CHECK(framed("Transfer-Encoding: Chunked\r\n"));
  for (const char* fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: +5\r\n",
                             "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n",
                             "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: xchunked\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Content-Length: \r\n"})
    CHECK_FALSE(framed(fields));
}

TEST_CASE("http body: chunks end where they say, however they are cut") {
  const std::string text = "5;x=\"y\"\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nA: b\r\n\r\nGET";
  const Bytes all = std::as_bytes(std::span(text));
  for (std::size_t step = 1; step <= text.size(); ++step) {
    Body body({.kind = Framing::Kind::chunked});
    Content content;
    std::size_t at = 0;
    while (!body.done()) at += body.take(all.subspan(at, std::min(step, all.size() - at)), &content).value();
    CHECK(at == text.size() - 3);
    CHECK(body.has_trailers());
    CHECK(content.size() == 11);
  }
  for (const char* wrong : {"g\r\n", "5\nhello", "\r\n", "5\r\nhelloX\r\n", "11111111111111111\r\n", "-1\r\n", "5 \r\n", "5\r\r\n"}) {
    const std::string_view said(wrong);
    CHECK_FALSE(Body({.kind = Framing::Kind::chunked}).take(std::as_bytes(std::span(said)), nullptr));
  }
}
