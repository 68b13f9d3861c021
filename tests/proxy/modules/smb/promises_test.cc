// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/promises.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

using longhaul::smb::Promises;
using Carrier = Promises::Carrier;
using Message = Promises::Message;
using Open = Promises::Open;
using Verdict = Promises::Verdict;

namespace {

constexpr std::uint32_t kAccessDenied = 0xC0000022;
constexpr std::uint32_t kMiB = 1 << 20;

}  // namespace

TEST_CASE("a write is promised, kept, and owed no longer") {
  Promises promises;
  CHECK(promises.promise(Open{1}, Message{7}, {.offset = 0, .length = 4096}) == Verdict::now);
  CHECK(promises.owes());
  CHECK(promises.outstanding_bytes() == 4096);
  const auto settled = promises.kept(Message{7}, 0, 4096);
  REQUIRE(settled);
  CHECK(settled->answered);
  CHECK_FALSE(promises.owes());
  CHECK(promises.settle(Open{1}, Carrier::close, 0) == 0);
  CHECK(promises.forget(Open{1}));
  CHECK(promises.audit().adds_up());
  CHECK(promises.audit().kept == 1);
}

TEST_CASE("a late error is put into one answer, and no write of that open is answered early again") {
  Promises promises;
  CHECK(promises.promise(Open{1}, Message{1}, {.offset = 0, .length = 10}) == Verdict::now);
  CHECK(promises.promise(Open{1}, Message{2}, {.offset = 10, .length = 10}) == Verdict::now);
  CHECK(promises.promise(Open{2}, Message{3}, {.offset = 0, .length = 10}) == Verdict::now);
  promises.kept(Message{1}, Promises::kDiskFull, 0);
  promises.kept(Message{2}, kAccessDenied, 0);
  promises.kept(Message{3}, 0, 10);
  CHECK(promises.owes());
  CHECK(promises.late_error(Open{1}) == Promises::kDiskFull);  // the first one
  CHECK(promises.promise(Open{1}, Message{4}, {.offset = 20, .length = 10}) == Verdict::refused);
  CHECK(promises.settle(Open{2}, Carrier::close, 0) == 0);  // another file's answer does not bear it
  CHECK(promises.settle(Open{1}, Carrier::flush, 0) == Promises::kDiskFull);
  CHECK(promises.settle(Open{1}, Carrier::close, 0) == 0);
  CHECK(promises.failed(Open{1}));
  CHECK(promises.forget(Open{1}));
  CHECK(promises.audit().failed == 2);
  CHECK(promises.audit().reported == 2);
  CHECK(promises.audit().adds_up());
}

TEST_CASE("a write's own error does not speak for earlier writes, a close's does") {
  Promises promises;
  promises.promise(Open{1}, Message{1}, {.offset = 0, .length = 10});
  promises.kept(Message{1}, Promises::kDiskFull, 0);
  CHECK(promises.settle(Open{1}, Carrier::write, kAccessDenied) == kAccessDenied);
  CHECK(promises.owes());
  CHECK(promises.settle(Open{1}, Carrier::close, kAccessDenied) == kAccessDenied);
  CHECK_FALSE(promises.owes());
}

TEST_CASE("a success that wrote less than was promised is a full disk") {
  Promises promises;
  promises.promise(Open{1}, Message{1}, {.offset = 0, .length = 10});
  promises.kept(Message{1}, 0, 9);
  CHECK(promises.settle(Open{1}, Carrier::close, 0) == Promises::kDiskFull);
}

TEST_CASE("beyond the bound a write waits for room or for its real answer, in order") {
  Promises promises;
  promises.set_line_rate(1);  // the least bound: 1 MiB
  CHECK(promises.promise(Open{1}, Message{1}, {.offset = 0, .length = kMiB}) == Verdict::now);
  CHECK(promises.promise(Open{1}, Message{2}, {.offset = kMiB, .length = kMiB / 2}) == Verdict::held);
  CHECK(promises.promise(Open{1}, Message{3}, {.offset = 2 * kMiB, .length = 1}) == Verdict::held);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.audit().made == 1);
  promises.kept(Message{1}, 0, kMiB);
  CHECK(promises.poll_answerable() == Message{2});
  CHECK(promises.poll_answerable() == Message{3});
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.audit().made == 3);
  CHECK(promises.audit().delayed == 2);
}

TEST_CASE("a held write that the server answers first was never a promise") {
  Promises promises;
  promises.promise(Open{1}, Message{1}, {.offset = 0, .length = kMiB});
  CHECK(promises.promise(Open{1}, Message{2}, {.offset = kMiB, .length = kMiB}) == Verdict::held);
  const auto settled = promises.kept(Message{2}, Promises::kDiskFull, 0);
  REQUIRE(settled);
  CHECK_FALSE(settled->answered);
  CHECK(promises.settle(Open{1}, Carrier::write, Promises::kDiskFull) == Promises::kDiskFull);
  promises.kept(Message{1}, 0, kMiB);
  CHECK_FALSE(promises.owes());
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.promise(Open{1}, Message{3}, {.offset = 0, .length = 1}) == Verdict::refused);
}

TEST_CASE("one write larger than the bound is promised while nothing else is") {
  Promises promises;
  CHECK(promises.promise(Open{1}, Message{1}, {.offset = 0, .length = 8 * kMiB}) == Verdict::now);
  CHECK(promises.promise(Open{1}, Message{2}, {.offset = 8 * kMiB, .length = 1}) == Verdict::held);
}

TEST_CASE("a stopped open answers nothing early, what it held waits for the server, others go on") {
  Promises promises;
  promises.promise(Open{1}, Message{1}, {.offset = 0, .length = kMiB});
  CHECK(promises.promise(Open{1}, Message{2}, {.offset = kMiB, .length = 10}) == Verdict::held);
  CHECK(promises.promise(Open{2}, Message{3}, {.offset = 0, .length = 10}) == Verdict::held);
  promises.stop(Open{1});
  promises.kept(Message{1}, 0, kMiB);
  CHECK(promises.poll_answerable() == Message{3});
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.waiting(Open{1}) == 1);
  CHECK(promises.promise(Open{1}, Message{4}, {.offset = 0, .length = 1}) == Verdict::refused);
  CHECK_FALSE(promises.kept(Message{2}, 0, 10)->answered);
  promises.resume(Open{1});
  CHECK(promises.promise(Open{1}, Message{5}, {.offset = 0, .length = 1}) == Verdict::now);
}

TEST_CASE("an open or a connection that ends with promises outstanding says so") {
  Promises promises;
  promises.promise(Open{1}, Message{1}, {.offset = 0, .length = 10});
  promises.promise(Open{2}, Message{2}, {.offset = 0, .length = 10});
  promises.kept(Message{2}, kAccessDenied, 0);
  CHECK_FALSE(promises.forget(Open{1}));
  CHECK(promises.outstanding_bytes() == 0);
  CHECK(promises.owes());
  promises.cut_off();
  CHECK_FALSE(promises.owes());
  CHECK(promises.audit().broken_off == 1);
  CHECK(promises.audit().cut_off == 1);
  CHECK(promises.audit().adds_up());
  CHECK_FALSE(promises.kept(Message{1}, 0, 10));  // an answer after the end is nobody's
}

TEST_CASE("ranges overlap up to the highest offset") {
  Promises promises;
  const std::uint64_t top = ~std::uint64_t{0} - 9;
  promises.promise(Open{1}, Message{1}, {.offset = top, .length = 10});
  promises.promise(Open{1}, Message{2}, {.offset = 100, .length = 10});
  CHECK(promises.overlaps(Open{1}, top + 9, 1));
  CHECK(promises.overlaps(Open{1}, 0, ~std::uint64_t{0}));
  CHECK(promises.overlaps(Open{1}, 109, 1));
  CHECK(promises.overlaps(Open{1}, 0, 101));
  CHECK_FALSE(promises.overlaps(Open{1}, 110, 1000));
  CHECK_FALSE(promises.overlaps(Open{1}, 0, 100));
  CHECK_FALSE(promises.overlaps(Open{2}, 100, 10));
}

TEST_CASE("whatever the order of answers, errors and ends, the audit adds up and no loss goes unreported") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    Promises promises;
    promises.set_line_rate(1);
    std::vector<std::pair<Open, Message>> with_server;  // and whether the client was answered
    std::set<Message> answered;
    std::map<std::uint64_t, bool> lost;  // a loss of which the client does not know
    std::uint64_t next = 1;
    for (int step = 0; step < 2000; ++step) {
      const Open open{below(4)};
      switch (below(6)) {
        case 0:
        case 1: {
          const Message message{next++};
          const Verdict verdict =
              promises.promise(open, message, {.offset = next * 1000, .length = below(300'000)});
          if (verdict != Verdict::refused) with_server.emplace_back(open, message);
          if (verdict == Verdict::now) answered.insert(message);
          break;
        }
        case 2: {
          if (with_server.empty()) break;
          const auto at = with_server.begin() + below(static_cast<std::uint32_t>(with_server.size()));
          const std::uint32_t status = below(20) == 0 ? Promises::kDiskFull : 0;
          if (status != 0 && answered.contains(at->second))
            lost[static_cast<std::uint64_t>(at->first)] = true;
          const auto settled = promises.kept(at->second, status, status == 0 ? ~0u : 0);
          REQUIRE(settled);
          REQUIRE(settled->answered == answered.contains(at->second));
          with_server.erase(at);
          break;
        }
        case 3:
          while (const auto message = promises.poll_answerable()) answered.insert(*message);
          break;
        case 4:
          if (promises.settle(open, Carrier::flush, 0) != 0) {
            REQUIRE(lost[static_cast<std::uint64_t>(open)]);
            lost[static_cast<std::uint64_t>(open)] = false;
          } else {
            REQUIRE_FALSE(lost[static_cast<std::uint64_t>(open)]);
          }
          break;
        default:
          if (promises.waiting(open) != 0) break;  // a CLOSE is held until then
          if (promises.settle(open, Carrier::close, 0) == 0)
            REQUIRE_FALSE(lost[static_cast<std::uint64_t>(open)]);
          lost[static_cast<std::uint64_t>(open)] = false;
          REQUIRE(promises.forget(open));
      }
      REQUIRE(promises.audit().adds_up());
      // A single write may exceed the bound; never two.
      REQUIRE(promises.outstanding_bytes() <= promises.bound_bytes());
    }
  }
}
