// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/ahead_cache.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "tests/proxy/modules/ahead/told_bytes.h"
#include "tests/proxy/modules/twin/numbers.h"

using namespace longhaul;
using namespace longhaul::ahead;
using namespace longhaul::ahead::test;

namespace {

struct Cache {
  std::shared_ptr<AheadAccount> account = std::make_shared<AheadAccount>();
  AheadCache cache;
  explicit Cache(AheadBounds bounds = {}) : cache(account, bounds) { cache.opened(key(1)); }
  void push(std::uint64_t offset, std::size_t size, std::optional<std::uint64_t> end = {}, Stamp stamp = {}) {
    cache.pushed({key(1), stamp, offset, static_cast<std::uint32_t>(size), end}, bytes(offset, size));
  }
  std::variant<ReadData, Asked> ask(std::uint64_t offset, std::uint32_t length, MessageNumber message = 1_number) {
    return cache.ask(key(1), message, offset, length);
  }
};

}  // namespace

TEST_CASE("pushed data answers READs of any size") {
  Cache c;
  c.push(0, 10), c.push(10, 5), c.push(15, 100);
  CHECK(text(std::get<ReadData>(c.ask(3, 50))) == content(3, 50));
  CHECK(text(std::get<ReadData>(c.ask(0, 115))) == content(0, 115));
  CHECK(c.cache.held_bytes() == 115);
}

TEST_CASE("a READ with missing data reports the gap, and is answered when the data arrives") {
  Cache c;
  c.push(0, 10), c.push(20, 10);
  Asked asked = std::get<Asked>(c.ask(5, 40, 77_number));
  CHECK(asked.missing_from == 10);
  CHECK(asked.missing_to == 45);
  CHECK(asked.seen == 2);
  c.push(10, 10);
  CHECK(!c.cache.poll_ready());
  c.push(25, 30);
  auto ready = c.cache.poll_ready();
  REQUIRE(ready);
  CHECK(ready->message == 77_number);
  CHECK(text(ready->data) == content(5, 40));
  CHECK(!c.cache.waits(77_number));
}

TEST_CASE("a READ is shortened at the end of the file, and empty behind it") {
  Cache c;
  c.push(0, 10, 10);
  CHECK(text(std::get<ReadData>(c.ask(5, 40))) == content(5, 5));
  CHECK(std::get<ReadData>(c.ask(10, 40)).length == 0);
  CHECK(std::get<ReadData>(c.ask(1000, 40)).length == 0);
  c.cache.opened(key(1));
  std::get<Asked>(c.ask(5, 40));
  c.push(0, 10, 10);
  CHECK(c.cache.poll_ready()->data.length == 5);
}

TEST_CASE("a response that came from behind the end does not move the end that is known") {
  Cache c;
  c.push(0, 10, 10), c.push(500, 0, 500);
  CHECK(text(std::get<ReadData>(c.ask(5, 40))) == content(5, 5));
  c.push(8, 0, 8);
  CHECK(text(std::get<ReadData>(c.ask(5, 40))) == content(5, 3));
}

TEST_CASE("after a drop by either side, old data answers no later READ") {
  Cache c;
  c.push(0, 10);
  CHECK(c.cache.drop(key(1)) == 1);
  CHECK(std::get<Asked>(c.ask(0, 10, 5_number)).stamp == Stamp{1, 0});
  c.push(0, 10);  // of the old stamp
  CHECK(!c.cache.poll_ready());
  c.push(0, 10, {}, {1, 0});
  CHECK(c.cache.poll_ready()->message == 5_number);
  c.cache.far_dropped(key(1), 3);
  CHECK(std::get<Asked>(c.ask(0, 10, 6_number)).stamp == Stamp{1, 3});
  c.push(0, 10, {}, {1, 0});
  CHECK(!c.cache.poll_ready());
}

TEST_CASE("a READ that was asked before a drop may still get data that was under way") {
  Cache c;
  std::get<Asked>(c.ask(0, 10, 5_number));
  c.cache.drop(key(1));
  c.push(0, 10);
  CHECK(c.cache.poll_ready()->message == 5_number);
  CHECK(std::holds_alternative<Asked>(c.ask(0, 10, 6_number)));
}

TEST_CASE("a READ that goes to the server is completed by nothing else") {
  Cache c;
  std::get<Asked>(c.ask(0, 10, 5_number));
  c.cache.forwarded(5_number);
  c.push(0, 10);
  CHECK(!c.cache.poll_ready());
  CHECK(c.cache.answered(5_number));
  CHECK(!c.cache.answered(5_number));
}

TEST_CASE("memory is bounded: data already read is evicted, data not yet read is not") {
  Cache c({.open_bytes = 100, .flow_bytes = 150});
  for (std::uint64_t at = 0; at < 100; at += 10) c.push(at, 10);
  c.push(100, 10);
  CHECK(c.cache.held_bytes() == 100);
  CHECK(std::holds_alternative<Asked>(c.ask(100, 10)));
  CHECK(text(std::get<ReadData>(c.ask(0, 30))) == content(0, 30));
  c.push(110, 30);
  CHECK(text(std::get<ReadData>(c.ask(110, 30))) == content(110, 30));
  CHECK(c.cache.held_bytes() <= 100);
  c.cache.opened(key(2));
  c.cache.pushed({key(2), {}, 0, 80, {}}, bytes(0, 80));
  CHECK(c.cache.held_bytes() <= 150);
  c.account->most_bytes = 0;
  c.cache.pushed({key(2), {}, 200, 10, {}}, bytes(200, 10));
  CHECK(std::holds_alternative<Asked>(c.cache.ask(key(2), 9_number, 200, 10)));
}

TEST_CASE("a cache returns its memory to the site's account when it ends") {
  auto account = std::make_shared<AheadAccount>();
  {
    AheadCache cache(account);
    cache.opened(key(1));
    cache.pushed({key(1), {}, 0, 80, {}}, bytes(0, 80));
    CHECK(account->held_bytes == 80);
    cache.forget(key(1));
    CHECK(account->held_bytes == 0);
    cache.opened(key(1));
    cache.pushed({key(1), {}, 0, 80, {}}, bytes(0, 80));
  }
  CHECK(account->held_bytes == 0);
}

TEST_CASE("random pushes and READs never give wrong bytes") {
  std::mt19937 random(7);
  Cache c({.open_bytes = 2000, .flow_bytes = 3000});
  std::map<MessageNumber, std::pair<std::uint64_t, std::uint32_t>> waiting;
  auto check = [&](std::uint64_t offset, std::uint32_t length, const ReadData& data) {
    std::uint64_t end = std::min<std::uint64_t>(offset + length, 4000);
    CHECK(text(data) == content(offset, end > offset ? end - offset : 0));
  };
  for (MessageNumber n = 1_number; n < 4000_number; ++n) {
    std::uint64_t offset = random() % 4100;
    auto length = static_cast<std::uint32_t>(1 + random() % 300);
    if (random() % 2) {
      auto size =
          static_cast<std::size_t>(offset >= 4000 ? 0 : std::min<std::uint64_t>(length, 4000 - offset));
      auto end = random() % 3 ? std::optional<std::uint64_t>{} : std::optional<std::uint64_t>{4000};
      auto stamp = *c.cache.stamp(key(1));
      c.push(std::min<std::uint64_t>(offset, 4000), size, end, stamp);
    } else {
      auto found = c.ask(offset, length, n);
      if (auto* data = std::get_if<ReadData>(&found))
        check(offset, length, *data);
      else
        waiting[n] = {offset, length};
    }
    if (random() % 100 == 0) c.cache.drop(key(1));
    while (auto ready = c.cache.poll_ready()) {
      REQUIRE(waiting.contains(ready->message));
      check(waiting[ready->message].first, waiting[ready->message].second, ready->data);
      waiting.erase(ready->message);
    }
    CHECK(c.cache.held_bytes() <= 2000);
  }
}

TEST_CASE(
    "each change of the permitted amount is announced once, and the amount shrinks as other flows hold "
    "more") {
  const auto account = std::make_shared<AheadAccount>(AheadAccount{.most_bytes = 8'000});
  AheadCache first(account, {.open_bytes = 4'000, .flow_bytes = 4'000});
  AheadCache second(account, {.open_bytes = 4'000, .flow_bytes = 4'000});
  CHECK_FALSE(first.poll_allowance());  // no file is open
  first.opened(key(1));
  second.opened(key(1));
  CHECK(first.poll_allowance() == 2'000);
  CHECK_FALSE(first.poll_allowance());
  CHECK(second.poll_allowance() == 2'000);
  first.pushed({key(1), {}, 0, 3'200, {}}, bytes(0, 3'200));
  CHECK(first.poll_allowance() == 4'000);  // what is there may stay, up to the flow's own bound
  CHECK(second.poll_allowance() == 1'200);
  second.pushed({key(1), {}, 0, 1'200, {}}, bytes(0, 1'200));
  CHECK(second.poll_allowance() == 1'200 + 900);
  first.drop(key(1));
  CHECK(first.poll_allowance() == 1'700);
  AheadCache third(std::make_shared<AheadAccount>());
  third.opened(key(1));
  CHECK_FALSE(third.poll_allowance());  // there is more than one flow may have
}

TEST_CASE("it is known whether something old would answer a READ") {
  using namespace std::chrono_literals;
  Cache c;
  const link::TimePoint first{}, then = first + 5s;
  c.cache.pushed({key(1), {}, 0, 10, {}}, bytes(0, 10), first);
  c.cache.pushed({key(1), {}, 5, 15, 20}, bytes(5, 15), then);  // what is there stays
  const auto has_older = [&](std::uint64_t offset, std::uint32_t length) {
    return c.cache.has_older(key(1), offset, length, then);
  };
  CHECK(has_older(0, 5));
  CHECK(has_older(9, 5));
  CHECK_FALSE(has_older(10, 10));
  CHECK_FALSE(has_older(10, 100));
  CHECK_FALSE(c.cache.has_older(key(1), 0, 5, first));
  CHECK_FALSE(c.cache.has_older(key(2), 0, 5, then));
  c.cache.pushed({key(1), {}, 20, 0, 20}, {},
                 then + 5s);  // says the same of the end, not that it looked again
  CHECK(c.cache.has_older(key(1), 10, 100, then + 1s));
  (void)c.cache.drop(key(1));
  CHECK_FALSE(has_older(0, 100));
}
