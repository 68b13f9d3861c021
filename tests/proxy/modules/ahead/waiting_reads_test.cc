// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/waiting_reads.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "tests/proxy/modules/ahead/told_bytes.h"
#include "tests/proxy/modules/twin/numbers.h"

using namespace longhaul;
using namespace longhaul::ahead;
using namespace longhaul::ahead::test;

namespace {

struct Reads {
  WaitingReads reads;
  void add(MessageNumber number, std::uint64_t offset, std::uint64_t end,
           std::map<std::uint64_t, Slice> pieces = {}, unsigned open = 1) {
    reads.add(number, {.open = key(open),
                       .stamp = {},
                       .offset = offset,
                       .end = end,
                       .pieces = std::move(pieces),
                       .end_of_file = {}});
  }
  void push(std::uint64_t offset, std::size_t size, std::optional<std::uint64_t> end = {}, Stamp stamp = {},
            unsigned open = 1) {
    reads.pushed({key(open), stamp, offset, static_cast<std::uint32_t>(size), end}, bytes(offset, size));
  }
};

}  // namespace

TEST_CASE("a READ that waits is ready with its last missing byte, and waits no more") {
  Reads r;
  r.add(7_number, 10, 40, {{10, bytes(10, 5)}, {20, bytes(20, 5)}});
  CHECK(r.reads.held_bytes() == 10);
  r.push(0, 19), r.push(25, 100);
  CHECK(r.reads.ready().empty());
  r.push(19, 1);
  CHECK(r.reads.ready().size() == 1);
  CHECK_FALSE(r.reads.contains(7_number));
  CHECK(r.reads.held_bytes() == 0);
  const auto ready = r.reads.poll_ready();
  REQUIRE(ready);
  CHECK(ready->message == 7_number);
  CHECK(ready->open == key(1));
  CHECK(ready->offset == 10);
  CHECK(text(ready->data) == content(10, 30));
  CHECK_FALSE(r.reads.poll_ready());
}

TEST_CASE("bytes of another open, of another stamp or outside its range do not complete a READ that waits") {
  Reads r;
  r.add(1_number, 100, 200);
  r.push(100, 100, {}, {}, 2);
  r.push(100, 100, {}, {.near = 1});
  r.push(0, 100), r.push(200, 100);
  CHECK(r.reads.ready().empty());
  CHECK(r.reads.held_bytes() == 0);
  r.push(0, 300);
  CHECK(text(r.reads.poll_ready()->data) == content(100, 100));
}

TEST_CASE("bytes that came twice are counted once") {
  Reads r;
  r.add(1_number, 0, 100);
  for (int i = 0; i < 5; ++i) r.push(10, 20), r.push(20, 20);
  CHECK(r.reads.held_bytes() == 30);
  CHECK(r.reads.ready().empty());
  r.push(0, 100);
  CHECK(text(r.reads.poll_ready()->data) == content(0, 100));
}

TEST_CASE("the file's end completes a READ that goes beyond it") {
  Reads r;
  r.add(1_number, 50, 150), r.add(2_number, 120, 150);
  r.push(50, 50);
  CHECK(r.reads.ready().empty());
  r.push(100, 0, 100);
  REQUIRE(r.reads.ready().size() == 2);
  CHECK(text(r.reads.poll_ready()->data) == content(50, 50));
  CHECK(r.reads.poll_ready()->data.length == 0);
}

TEST_CASE("of several ends of the file the least is right, however many come and in whatever order") {
  Reads r;
  r.add(1_number, 50, 250);
  r.push(50, 50);
  for (std::uint64_t end = 400; end > 100; --end) r.push(end, 0, end);  // responses without data
  CHECK(r.reads.ready().empty());
  r.push(100, 0, 100);
  REQUIRE(r.reads.ready().size() == 1);
  CHECK(text(r.reads.poll_ready()->data) == content(50, 50));

  r.add(2_number, 50, 250);
  r.push(100, 0, 100), r.push(200, 0, 200);  // the later one says nothing new
  CHECK(r.reads.ready().empty());
  r.push(50, 50);
  CHECK(text(r.reads.poll_ready()->data) == content(50, 50));
}

TEST_CASE("an end before bytes that have come, or before the READ, leaves nothing to wait for there") {
  Reads r;
  r.add(1_number, 50, 150, {{60, bytes(60, 20)}, {90, bytes(90, 40)}});
  r.push(70, 0, 100), r.push(70, 0, 70);
  CHECK(r.reads.ready().empty());
  r.push(50, 10);
  CHECK(text(r.reads.poll_ready()->data) == content(50, 20));
  r.add(2_number, 50, 150);
  r.push(20, 0, 20);
  CHECK(r.reads.poll_ready()->data.length == 0);
}

TEST_CASE("a READ that the server answers is not completed by pushed bytes") {
  Reads r;
  r.add(1_number, 0, 100, {{0, bytes(0, 50)}});
  r.reads.forwarded(1_number);
  r.reads.forwarded(99_number);
  CHECK(r.reads.held_bytes() == 0);
  r.push(0, 100);
  CHECK(r.reads.ready().empty());
  REQUIRE(r.reads.contains(1_number));
  const auto answered = r.reads.answered(1_number);
  REQUIRE(answered);
  CHECK(answered->open == key(1));
  CHECK(answered->offset == 0);
  CHECK_FALSE(r.reads.answered(1_number));
}

TEST_CASE("a number used again replaces the READ that waited under it") {
  Reads r;
  r.add(1_number, 0, 100, {{0, bytes(0, 50)}});
  r.add(1_number, 500, 600, {{500, bytes(500, 10)}}, 2);
  CHECK(r.reads.size() == 1);
  CHECK(r.reads.held_bytes() == 10);
  r.push(0, 100);
  CHECK(r.reads.ready().empty());
  r.push(500, 100, {}, {}, 2);
  CHECK(text(r.reads.poll_ready()->data) == content(500, 100));
}

TEST_CASE("each READ gets its own bytes, in whatever pieces and order these come") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    CAPTURE(seed);
    Reads r;
    std::map<MessageNumber, std::pair<std::uint64_t, std::uint64_t>> asked;
    for (MessageNumber n = 1_number; n <= 8_number; ++n) {
      const std::uint64_t offset = random() % 900, end = offset + 1 + random() % 99;
      asked[n] = {offset, end};
      r.add(n, offset, end);
    }
    const std::uint64_t end_of_file = random() % 1200;
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t at = random() % 1000, no_less = end_of_file + random() % 400;
      const auto size = std::min<std::uint64_t>(random() % 60, end_of_file - std::min(end_of_file, at));
      r.push(at, size, random() % 3 == 0 ? std::optional(no_less) : std::nullopt);
    }
    r.push(0, end_of_file, end_of_file);
    while (const auto ready = r.reads.poll_ready()) {
      const auto [offset, end] = asked.at(ready->message);
      const std::uint64_t until = std::max(offset, std::min(end, end_of_file));
      CHECK(text(ready->data) == content(offset, until - offset));
      asked.erase(ready->message);
    }
    CHECK(asked.empty());
    CHECK(r.reads.size() == 0);
    CHECK(r.reads.held_bytes() == 0);
  }
}
