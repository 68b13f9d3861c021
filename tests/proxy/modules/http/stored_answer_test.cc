// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/stored_answer.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::http;
using namespace std::chrono_literals;

namespace {

constexpr link::TimePoint kStoredAt{std::chrono::hours(1)};

RequestHead asking(std::string_view fields = "") {
  const std::string text = "GET /a HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n";
  return read_request(std::as_bytes(std::span(text))).value();
}
Stored stored_page(std::string_view fields) {
  const std::string text = "HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n";
  return to_store(asking(), read_response(std::as_bytes(std::span(text))).value(), kStoredAt, 1'700'000'000);
}

}  // namespace

TEST_CASE("http cache: one part of what is stored, and nothing for what there is not") {
  Stored page = stored_page("ETag: \"a\"\r\n");
  page.content_bytes = 10;
  const auto part = [&](std::string range) {
    const auto found = part_of(page, asking("Range: " + range + "\r\n"));
    return found ? std::to_string(found->first) + '+' + std::to_string(found->size) : "none";
  };
  CHECK(part("bytes=0-0") == "0+1");
  CHECK(part("bytes=2-") == "2+8");
  CHECK(part("bytes=2-100") == "2+8");
  CHECK(part("bytes=-3") == "7+3");
  CHECK(part("bytes=-30") == "0+10");
  for (const char* range : {"bytes=10-", "bytes=-0", "bytes=3-2", "bytes=-", "bytes=0-1,3-4", "lines=0-1",
                            "bytes=a-b", "bytes=99999999999999999999-", "bytes= 0-1"})
    CHECK(part(range) == "none");
}

TEST_CASE("http cache: an answer has the stored fields, its length, its age and where it comes from") {
  Stored page = stored_page("ETag: \"a\"\r\nContent-Type: text/html\r\nContent-Length: 10\r\nAge: 5\r\n");
  page.content_bytes = 10;
  const ResponseHead all = answer_of(page, kStoredAt + 7s, {.note = "hit"});
  CHECK(all.status == 200);
  CHECK(all.fields.value("etag") == "\"a\"");
  CHECK(all.fields.value("content-length") == "10");
  CHECK(all.fields.count("content-length") == 1);
  CHECK(all.fields.value("age") == "12");
  CHECK(all.fields.count("age") == 1);
  CHECK(all.fields.value("cache-status") == "longhaul;hit");
  CHECK_FALSE(all.fields.has("connection"));
  CHECK(answer_of(page, kStoredAt, {.closes = true}).fields.value("connection") == "close");
}

TEST_CASE("http cache: an answer of one part says which, one without content says nothing about it") {
  Stored page = stored_page("ETag: \"a\"\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n");
  page.content_bytes = 10;
  const ResponseHead part = answer_of(page, kStoredAt, {.part = Part{2, 3}});
  CHECK(part.status == 206);
  CHECK(part.fields.value("content-range") == "bytes 2-4/10");
  CHECK(part.fields.value("content-length") == "3");
  const ResponseHead unchanged = answer_of(page, kStoredAt, {.not_modified = true});
  CHECK(unchanged.status == 304);
  CHECK(unchanged.fields.value("etag") == "\"a\"");
  for (const char* name : {"content-length", "content-type", "content-encoding", "content-range"})
    CHECK_FALSE(unchanged.fields.has(name));
}

TEST_CASE("http cache: the head of an answer as HTTP/1 reads as the same answer") {
  Stored page = stored_page("ETag: \"a\"\r\n");
  page.content_bytes = 3;
  const auto read = read_response(answer_head(page, kStoredAt, {.note = "hit"}).bytes());
  REQUIRE(read);
  CHECK(read->status == 200);
  CHECK(read->phrase == "OK");
  CHECK(read->fields.all().size() == answer_of(page, kStoredAt, {.note = "hit"}).fields.all().size());
}
