// SPDX-License-Identifier: Apache-2.0
// A stored response as bytes: a record and its tag that were written by hand, so that a later version reads
// what this one has left on disk, or says that it does not.
#include "proxy/modules/http/stored_record.h"

#include <catch2/catch.hpp>

namespace longhaul::http {
namespace {

using namespace std::string_literals;

const std::string kGoldenRecord =
    "\x01"                              // version
    "\x00\xc8"                          // 200
    "\x02"                              // for all
    "\x00\x00\x00\x01\x2a\x05\xf2\x00"  // received at 5 s of the loop's clock
    "\x00\x00\x00\x00\x65\x53\xf0\xfd"  // and at 1,699,999,997 of the wall clock
    "\x00\x00\x00\x00\x00\x00\x00\x0a"  // ten seconds old
    "\x00\x00\x00\x00\x00\x00\x0e\x10"  // fresh for an hour
    "\x02OK\x03\"1\"\x00"               // phrase, tag, no date
    "\x01\x06"
    "accept"  // varies with it
    "\x01\x04"
    "ETag\x03\"1\""  // one field
    "\x00\x00\x00\x00\x00\x00\x00\x03"s;
const std::string kGoldenTag =
    "\x03"  // for all, has a validator
    "\x01\x06"
    "accept"
    "\xa4\xd9\x50\x19\x74\xaf\x74\x3b\xe5\x88\xed\xce\x4c\xd6\xb6\x96"s;  // SHA-256(06 accept 03 a/b)

const Clocks kWritten{.now = link::TimePoint(std::chrono::seconds(8)), .wall = 1'700'000'000};

RequestHead asking_for(const std::string& accept) {
  RequestHead head{.method = "GET", .target = "/"};
  head.fields.add({"Accept", accept});
  return head;
}

Stored golden_response() {
  Stored response{.status = 200, .phrase = "OK"};
  response.fields.add({"ETag", "\"1\""});
  response.content = {Slice::copy_of(as_bytes("abc"))};
  response.content_bytes = 3;
  response.vary = {{"accept", "a/b"}};
  response.received = link::TimePoint(std::chrono::seconds(5));
  response.age_then = 10;
  response.lifetime = 3600;
  response.for_all = true;
  response.etag = "\"1\"";
  return response;
}

}  // namespace

TEST_CASE("http record: a response and its tag match the format, byte for byte") {
  CHECK(as_text(write_stored(golden_response(), kWritten)) == kGoldenRecord);
  const auto tag = tag_of(golden_response());
  REQUIRE(tag);
  CHECK(as_text(*tag) == kGoldenTag);
}

TEST_CASE("http record: what an earlier program has written is read") {
  const Clocks later{.now = kWritten.now + std::chrono::seconds(60), .wall = kWritten.wall + 60};
  const auto read = read_stored(Slice::copy_of(as_bytes(kGoldenRecord + "abc")), asking_for("a/b"), true, later);
  REQUIRE(read);
  CHECK(read->status == 200);
  CHECK(read->phrase == "OK");
  CHECK(read->etag == "\"1\"");
  CHECK(read->last_modified.empty());
  CHECK((read->for_all && !read->validate_always));
  CHECK(read->age(later.now) == 10 + 63);
  CHECK(read->lifetime == 3600);
  CHECK(read->vary == golden_response().vary);
  REQUIRE(read->fields.all().size() == 1);
  CHECK(read->fields.value("etag") == "\"1\"");
  REQUIRE(read->content.size() == 1);
  CHECK(as_text(read->content.front().bytes()) == "abc");

  CHECK(tag_fits(as_bytes(kGoldenTag), asking_for("a/b"), true));
  CHECK_FALSE(tag_fits(as_bytes(kGoldenTag), asking_for("a/c"), true));
}

TEST_CASE("http record: another version, and a record that is cut anywhere, are not read") {
  const std::string whole = kGoldenRecord + "abc";
  const auto is_read = [](const std::string& bytes) {
    return read_stored(Slice::copy_of(as_bytes(bytes)), asking_for("a/b"), true, kWritten).has_value();
  };
  CHECK(is_read(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK_FALSE(is_read(whole.substr(0, size)));
  CHECK_FALSE(is_read(whole + "d"));
  std::string next = whole;
  next[0] = 2;
  CHECK_FALSE(is_read(next));
}

}  // namespace longhaul::http
