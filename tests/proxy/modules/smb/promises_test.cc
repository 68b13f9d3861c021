// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/promises.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/proxy/modules/twin/numbers.h"

using longhaul::smb::MessageNumber;
using longhaul::smb::OpenKey;
using longhaul::smb::Promises;
using longhaul::smb::Status;
using longhaul::operator""_number;
using Verdict = Promises::Verdict;

namespace {

constexpr std::uint32_t kLargeWrite = 1 << 20;

OpenKey file(std::uint64_t number) { return {.session = number, .tree = 1}; }

}  // namespace

TEST_CASE("a write is promised, then kept, and then no longer outstanding") {
  Promises promises;
  CHECK(promises.promise(file(1), 7_number, {.offset = 0, .length = 4096}) == Verdict::now);
  CHECK(promises.owes());
  CHECK(promises.outstanding_bytes() == 4096);
  const auto settled = promises.kept(7_number, Status::success, 4096);
  REQUIRE(settled);
  CHECK(settled->answered);
  CHECK_FALSE(promises.owes());
  CHECK(promises.settle(file(1), Status::success) == Status::success);
  CHECK(promises.forget(file(1)));
  CHECK(promises.audit().adds_up());
  CHECK(promises.audit().kept == 1);
}

TEST_CASE("an open with a lost write fails until it is closed, and its writes are not answered early again") {
  Promises promises;
  CHECK(promises.promise(file(1), 1_number, {.offset = 0, .length = 10}) == Verdict::now);
  CHECK(promises.promise(file(1), 2_number, {.offset = 10, .length = 10}) == Verdict::now);
  CHECK(promises.promise(file(2), 3_number, {.offset = 0, .length = 10}) == Verdict::now);
  promises.kept(1_number, Status::disk_full, 0);
  promises.kept(2_number, Status::access_denied, 0);
  promises.kept(3_number, Status::success, 10);
  CHECK(promises.owes());
  CHECK(promises.lost(file(1)));
  CHECK(promises.unreported(file(1)));
  CHECK_FALSE(promises.lost(file(2)));
  CHECK(promises.promise(file(1), 4_number, {.offset = 20, .length = 10}) == Verdict::refused);
  CHECK(promises.settle(file(2), Status::success) ==
        Status::success);  // another file's answer does not bear it
  for (int i = 0; i < 3; ++i) {
    CHECK(promises.settle(file(1), Status::success) == Status::lost_writebehind_data);
    CHECK_FALSE(promises.unreported(file(1)));
  }
  CHECK(promises.failed(file(1)));
  CHECK(promises.forget(file(1)));
  CHECK(promises.audit().failed == 2);
  CHECK(promises.audit().reported == 2);
  CHECK(promises.audit().adds_up());
}

TEST_CASE("after a loss no error is returned that makes a program wait or log in again") {
  for (const Status own :
       {Status::disk_full, Status::quota_exceeded, Status::network_session_expired,
        Status::user_session_deleted, Status::network_name_deleted, Status::access_denied}) {
    Promises promises;
    CHECK(promises.promise(file(1), 1_number, {.offset = 0, .length = 10}) == Verdict::now);
    promises.kept(1_number, own, 0);
    CHECK(promises.settle(file(1), own) == Status::lost_writebehind_data);
    CHECK(promises.settle(file(1), Status::success) == Status::lost_writebehind_data);
    CHECK(promises.audit().reported == 1);
    CHECK(promises.audit().adds_up());
    CHECK_FALSE(promises.owes());
  }
}

TEST_CASE("a success with fewer bytes than promised is a loss") {
  Promises promises;
  promises.promise(file(1), 1_number, {.offset = 0, .length = 10});
  promises.kept(1_number, Status::success, 9);
  CHECK(promises.settle(file(1), Status::success) == Status::lost_writebehind_data);
}

TEST_CASE("beyond the bound a write waits for room or for its real answer, in order") {
  Promises promises;
  promises.set_line_rate(kLargeWrite / 2);  // 1 MiB in two seconds
  CHECK(promises.promise(file(1), 1_number, {.offset = 0, .length = kLargeWrite}) == Verdict::now);
  CHECK(promises.promise(file(1), 2_number, {.offset = kLargeWrite, .length = kLargeWrite / 2}) == Verdict::held);
  CHECK(promises.promise(file(1), 3_number, {.offset = 2 * kLargeWrite, .length = 1}) == Verdict::held);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.audit().made == 1);
  promises.kept(1_number, Status::success, kLargeWrite);
  CHECK(promises.poll_answerable() == 2_number);
  CHECK(promises.poll_answerable() == 3_number);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.audit().made == 3);
  CHECK(promises.audit().delayed == 2);
}

TEST_CASE("a held write that the server answers first is not counted as a promise") {
  Promises promises;
  promises.set_line_rate(kLargeWrite / 2);
  promises.promise(file(1), 1_number, {.offset = 0, .length = kLargeWrite});
  CHECK(promises.promise(file(1), 2_number, {.offset = kLargeWrite, .length = kLargeWrite}) == Verdict::held);
  const auto settled = promises.kept(2_number, Status::disk_full, 0);
  REQUIRE(settled);
  CHECK_FALSE(settled->answered);
  CHECK(promises.settle(file(1), Status::disk_full) == Status::disk_full);
  promises.kept(1_number, Status::success, kLargeWrite);
  CHECK_FALSE(promises.owes());
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.promise(file(1), 3_number, {.offset = 0, .length = 1}) == Verdict::refused);
}

TEST_CASE("a single write that the line does not drain within the bound waits for the server") {
  constexpr double kT1 = 1'544'000 / 8, k50Mbit = 50'000'000 / 8;
  Promises promises;
  promises.set_line_rate(kT1);
  CHECK(promises.promise(file(1), 1_number, {.offset = 0, .length = 8 * kLargeWrite}) == Verdict::held);
  CHECK_FALSE(promises.poll_answerable());
  CHECK_FALSE(promises.kept(1_number, Status::success, 8 * kLargeWrite)->answered);
  CHECK(promises.promise(file(1), 2_number, {.offset = 0, .length = 256 << 10}) == Verdict::now);
  CHECK(promises.promise(file(1), 3_number, {.offset = 0, .length = 256 << 10}) == Verdict::held);
  // Where the line takes less time for it than a round trip, nothing waits.
  Promises fast;
  fast.set_line_rate(k50Mbit);
  for (std::uint64_t each = 1; each <= 11; ++each)
    CHECK(fast.promise(file(1), MessageNumber{each}, {.offset = each * kLargeWrite, .length = kLargeWrite}) == Verdict::now);
}

TEST_CASE("a small write is promised on any line, and a rate that is not known says nothing") {
  Promises promises;
  CHECK(promises.promise(file(1), 1_number, {.offset = 0, .length = 512 << 10}) == Verdict::held);
  (void)promises.kept(1_number, Status::success, 512 << 10);
  promises.set_line_rate(1);
  CHECK(promises.promise(file(1), 2_number, {.offset = 0, .length = 64 << 10}) == Verdict::now);
  promises.set_line_rate(1'000'000);
  const std::uint64_t bound = promises.bound_bytes();
  promises.set_line_rate(0);
  CHECK(promises.bound_bytes() == bound);
}

TEST_CASE("a stopped open promises nothing, its held writes wait for the server, and others continue") {
  Promises promises;
  promises.set_line_rate(kLargeWrite / 2);
  promises.promise(file(1), 1_number, {.offset = 0, .length = kLargeWrite});
  CHECK(promises.promise(file(1), 2_number, {.offset = kLargeWrite, .length = 10}) == Verdict::held);
  CHECK(promises.promise(file(2), 3_number, {.offset = 0, .length = 10}) == Verdict::held);
  promises.stop(file(1));
  promises.kept(1_number, Status::success, kLargeWrite);
  CHECK(promises.poll_answerable() == 3_number);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.waiting(file(1)) == 1);
  CHECK(promises.promise(file(1), 4_number, {.offset = 0, .length = 1}) == Verdict::refused);
  CHECK_FALSE(promises.kept(2_number, Status::success, 10)->answered);
  promises.resume(file(1));
  CHECK(promises.promise(file(1), 5_number, {.offset = 0, .length = 1}) == Verdict::now);
}

TEST_CASE("an open or connection that ends with outstanding promises reports so") {
  Promises promises;
  promises.promise(file(1), 1_number, {.offset = 0, .length = 10});
  promises.promise(file(2), 2_number, {.offset = 0, .length = 10});
  promises.kept(2_number, Status::access_denied, 0);
  CHECK_FALSE(promises.forget(file(1)));
  CHECK(promises.outstanding_bytes() == 0);
  CHECK(promises.owes());
  promises.cut_off();
  CHECK_FALSE(promises.owes());
  CHECK(promises.audit().broken_off == 1);
  CHECK(promises.audit().cut_off == 1);
  CHECK(promises.audit().adds_up());
  CHECK_FALSE(promises.kept(1_number, Status::success, 10));  // an answer after the end is ignored
}

TEST_CASE("a write whose permission is still open waits for it, and later writes wait behind it") {
  using Conditions = Promises::Conditions;
  Promises promises;
  const auto ask = [&](MessageNumber message, Conditions conditions) {
    return promises.promise(file(message.number() % 2), message, {.offset = message.number() * 10, .length = 10}, conditions);
  };
  CHECK(ask(1_number, Conditions::open_question) == Verdict::held);
  CHECK(ask(2_number, Conditions::open_question) == Verdict::held);
  CHECK(ask(3_number, Conditions::fulfilled) == Verdict::held);
  CHECK_FALSE(promises.poll_answerable());
  CHECK_FALSE(promises.owes());
  promises.decide(2_number, Promises::Answer::yes);
  CHECK_FALSE(promises.poll_answerable());  // in order
  promises.decide(1_number, Promises::Answer::no);
  CHECK(promises.poll_answerable() == 2_number);
  CHECK(promises.poll_answerable() == 3_number);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(ask(4_number, Conditions::fulfilled) == Verdict::now);
  const auto settled = promises.kept(1_number, Status::success, 10);
  REQUIRE(settled);
  CHECK_FALSE(settled->answered);
  for (const MessageNumber message : {2_number, 3_number, 4_number}) CHECK(promises.kept(message, Status::success, 10)->answered);
  promises.decide(2_number, Promises::Answer::yes);  // too late for anything
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.waiting() == 0);
  CHECK(promises.audit().made == 3);
  CHECK(promises.audit().adds_up());
}

TEST_CASE("a permission question that the server's answer overtakes delays nothing") {
  Promises promises;
  CHECK(promises.promise(file(1), 1_number, {.offset = 0, .length = 10}, Promises::Conditions::open_question) ==
        Verdict::held);
  CHECK_FALSE(promises.kept(1_number, Status::success, 10)->answered);
  CHECK(promises.promise(file(1), 2_number, {.offset = 10, .length = 10}) == Verdict::now);
}

TEST_CASE("in any order of answers, errors and ends the audit adds up and every loss is reported") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    Promises promises;
    promises.set_line_rate(kLargeWrite / 2);
    std::vector<std::pair<OpenKey, MessageNumber>> with_server;
    std::set<MessageNumber> answered;
    std::map<OpenKey, bool> lost;  // until the open is closed
    std::uint64_t next = 1;
    for (int step = 0; step < 2000; ++step) {
      const OpenKey open = file(below(4));
      switch (below(6)) {
        case 0:
        case 1: {
          const MessageNumber message{next++};
          const Verdict verdict =
              promises.promise(open, message, {.offset = next * 1000, .length = below(300'000)});
          if (verdict != Verdict::refused) with_server.emplace_back(open, message);
          if (verdict == Verdict::now) answered.insert(message);
          break;
        }
        case 2: {
          if (with_server.empty()) break;
          const auto at = with_server.begin() + below(static_cast<std::uint32_t>(with_server.size()));
          const Status status = below(20) == 0 ? Status::disk_full : Status::success;
          if (status != Status::success && answered.contains(at->second)) lost[at->first] = true;
          const auto settled = promises.kept(at->second, status, status == Status::success ? ~0u : 0);
          REQUIRE(settled);
          REQUIRE(settled->answered == answered.contains(at->second));
          with_server.erase(at);
          break;
        }
        case 3:
          while (const auto message = promises.poll_answerable()) answered.insert(*message);
          break;
        case 4:
          REQUIRE((promises.settle(open, Status::success) != Status::success) == lost[open]);
          break;
        default:
          if (promises.waiting(open) != 0) break;  // a CLOSE is held until then
          REQUIRE((promises.settle(open, Status::success) != Status::success) == lost[open]);
          lost[open] = false;
          REQUIRE(promises.forget(open));
      }
      REQUIRE(promises.audit().adds_up());
      REQUIRE(promises.outstanding_bytes() <= promises.bound_bytes());
    }
  }
}
