// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/promises.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <vector>

using longhaul::smb::Promises;
using Carrier = Promises::Carrier;
using longhaul::smb::MessageNumber;
using longhaul::smb::OpenKey;
using longhaul::smb::Status;
using Verdict = Promises::Verdict;

namespace {

constexpr std::uint32_t kLargeWrite = 1 << 20;

OpenKey file(std::uint64_t number) { return {.session = number, .tree = 1}; }

}  // namespace

TEST_CASE("a write is promised, kept, and owed no longer") {
  Promises promises;
  CHECK(promises.promise(file(1), 7, {.offset = 0, .length = 4096}) == Verdict::now);
  CHECK(promises.owes());
  CHECK(promises.outstanding_bytes() == 4096);
  const auto settled = promises.kept(7, Status::success, 4096);
  REQUIRE(settled);
  CHECK(settled->answered);
  CHECK_FALSE(promises.owes());
  CHECK(promises.settle(file(1), Carrier::close, Status::success) == Status::success);
  CHECK(promises.forget(file(1)));
  CHECK(promises.audit().adds_up());
  CHECK(promises.audit().kept == 1);
}

TEST_CASE("a late error is put into one answer, and no write of that open is answered early again") {
  Promises promises;
  CHECK(promises.promise(file(1), 1, {.offset = 0, .length = 10}) == Verdict::now);
  CHECK(promises.promise(file(1), 2, {.offset = 10, .length = 10}) == Verdict::now);
  CHECK(promises.promise(file(2), 3, {.offset = 0, .length = 10}) == Verdict::now);
  promises.kept(1, Status::disk_full, 0);
  promises.kept(2, Status::access_denied, 0);
  promises.kept(3, Status::success, 10);
  CHECK(promises.owes());
  CHECK(promises.late_error(file(1)) == Status::disk_full);  // the first one
  CHECK(promises.promise(file(1), 4, {.offset = 20, .length = 10}) == Verdict::refused);
  CHECK(promises.settle(file(2), Carrier::close, Status::success) ==
        Status::success);  // another file's answer does not bear it
  CHECK(promises.settle(file(1), Carrier::flush, Status::success) == Status::disk_full);
  CHECK(promises.settle(file(1), Carrier::close, Status::success) == Status::success);
  CHECK(promises.failed(file(1)));
  CHECK(promises.forget(file(1)));
  CHECK(promises.audit().failed == 2);
  CHECK(promises.audit().reported == 2);
  CHECK(promises.audit().adds_up());
}

TEST_CASE("a write's own error does not speak for earlier writes, a close's does") {
  Promises promises;
  promises.promise(file(1), 1, {.offset = 0, .length = 10});
  promises.kept(1, Status::disk_full, 0);
  CHECK(promises.settle(file(1), Carrier::write, Status::access_denied) == Status::access_denied);
  CHECK(promises.owes());
  CHECK(promises.settle(file(1), Carrier::close, Status::access_denied) == Status::access_denied);
  CHECK_FALSE(promises.owes());
}

TEST_CASE("what a client would renew its session for and ask again reports nothing") {
  for (const Status again : {Status::network_session_expired, Status::user_session_deleted,
                             Status::network_name_deleted, Status::cancelled}) {
    Promises promises;
    CHECK(promises.promise(file(1), 1, {.offset = 0, .length = 10}) == Verdict::now);
    promises.kept(1, again, 0);
    CHECK(promises.late_error(file(1)) == Status::lost_writebehind_data);
    for (const Carrier carrier : {Carrier::flush, Carrier::close}) {
      CHECK(promises.settle(file(1), carrier, again) == again);
      CHECK(promises.audit().reported == 0);
    }
    CHECK(promises.settle(file(1), Carrier::flush, Status::success) == Status::lost_writebehind_data);
    CHECK(promises.audit().reported == 1);
    CHECK(promises.audit().adds_up());
  }
}

TEST_CASE("a success that wrote less than was promised is a full disk") {
  Promises promises;
  promises.promise(file(1), 1, {.offset = 0, .length = 10});
  promises.kept(1, Status::success, 9);
  CHECK(promises.settle(file(1), Carrier::close, Status::success) == Status::disk_full);
}

TEST_CASE("beyond the bound a write waits for room or for its real answer, in order") {
  Promises promises;
  promises.set_line_rate(1);  // the least bound: 1 MiB
  CHECK(promises.promise(file(1), 1, {.offset = 0, .length = kLargeWrite}) == Verdict::now);
  CHECK(promises.promise(file(1), 2, {.offset = kLargeWrite, .length = kLargeWrite / 2}) == Verdict::held);
  CHECK(promises.promise(file(1), 3, {.offset = 2 * kLargeWrite, .length = 1}) == Verdict::held);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.audit().made == 1);
  promises.kept(1, Status::success, kLargeWrite);
  CHECK(promises.poll_answerable() == 2);
  CHECK(promises.poll_answerable() == 3);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.audit().made == 3);
  CHECK(promises.audit().delayed == 2);
}

TEST_CASE("a held write that the server answers first was never a promise") {
  Promises promises;
  promises.promise(file(1), 1, {.offset = 0, .length = kLargeWrite});
  CHECK(promises.promise(file(1), 2, {.offset = kLargeWrite, .length = kLargeWrite}) == Verdict::held);
  const auto settled = promises.kept(2, Status::disk_full, 0);
  REQUIRE(settled);
  CHECK_FALSE(settled->answered);
  CHECK(promises.settle(file(1), Carrier::write, Status::disk_full) == Status::disk_full);
  promises.kept(1, Status::success, kLargeWrite);
  CHECK_FALSE(promises.owes());
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.promise(file(1), 3, {.offset = 0, .length = 1}) == Verdict::refused);
}

TEST_CASE("one write larger than the bound is promised while nothing else is") {
  Promises promises;
  CHECK(promises.promise(file(1), 1, {.offset = 0, .length = 8 * kLargeWrite}) == Verdict::now);
  CHECK(promises.promise(file(1), 2, {.offset = 8 * kLargeWrite, .length = 1}) == Verdict::held);
}

TEST_CASE("a stopped open answers nothing early, what it held waits for the server, others go on") {
  Promises promises;
  promises.promise(file(1), 1, {.offset = 0, .length = kLargeWrite});
  CHECK(promises.promise(file(1), 2, {.offset = kLargeWrite, .length = 10}) == Verdict::held);
  CHECK(promises.promise(file(2), 3, {.offset = 0, .length = 10}) == Verdict::held);
  promises.stop(file(1));
  promises.kept(1, Status::success, kLargeWrite);
  CHECK(promises.poll_answerable() == 3);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.waiting(file(1)) == 1);
  CHECK(promises.promise(file(1), 4, {.offset = 0, .length = 1}) == Verdict::refused);
  CHECK_FALSE(promises.kept(2, Status::success, 10)->answered);
  promises.resume(file(1));
  CHECK(promises.promise(file(1), 5, {.offset = 0, .length = 1}) == Verdict::now);
}

TEST_CASE("an open or a connection that ends with promises outstanding says so") {
  Promises promises;
  promises.promise(file(1), 1, {.offset = 0, .length = 10});
  promises.promise(file(2), 2, {.offset = 0, .length = 10});
  promises.kept(2, Status::access_denied, 0);
  CHECK_FALSE(promises.forget(file(1)));
  CHECK(promises.outstanding_bytes() == 0);
  CHECK(promises.owes());
  promises.cut_off();
  CHECK_FALSE(promises.owes());
  CHECK(promises.audit().broken_off == 1);
  CHECK(promises.audit().cut_off == 1);
  CHECK(promises.audit().adds_up());
  CHECK_FALSE(promises.kept(1, Status::success, 10));  // an answer after the end is nobody's
}

TEST_CASE(
    "a write of which it is not clear yet whether it may be promised waits for that, and others behind it") {
  using Conditions = Promises::Conditions;
  Promises promises;
  const auto ask = [&](MessageNumber message, Conditions conditions) {
    return promises.promise(file(message % 2), message, {.offset = message * 10, .length = 10}, conditions);
  };
  CHECK(ask(1, Conditions::open_question) == Verdict::held);
  CHECK(ask(2, Conditions::open_question) == Verdict::held);
  CHECK(ask(3, Conditions::fulfilled) == Verdict::held);
  CHECK_FALSE(promises.poll_answerable());
  CHECK_FALSE(promises.owes());
  promises.decide(2, Promises::Answer::yes);
  CHECK_FALSE(promises.poll_answerable());  // in order
  promises.decide(1, Promises::Answer::no);
  CHECK(promises.poll_answerable() == 2);
  CHECK(promises.poll_answerable() == 3);
  CHECK_FALSE(promises.poll_answerable());
  CHECK(ask(4, Conditions::fulfilled) == Verdict::now);
  const auto settled = promises.kept(1, Status::success, 10);
  REQUIRE(settled);
  CHECK_FALSE(settled->answered);
  for (const MessageNumber message : {2, 3, 4}) CHECK(promises.kept(message, Status::success, 10)->answered);
  promises.decide(2, Promises::Answer::yes);  // too late for anything
  CHECK_FALSE(promises.poll_answerable());
  CHECK(promises.waiting() == 0);
  CHECK(promises.audit().made == 3);
  CHECK(promises.audit().adds_up());
}

TEST_CASE("an open question that the server's answer overtakes holds nobody up") {
  Promises promises;
  CHECK(promises.promise(file(1), 1, {.offset = 0, .length = 10}, Promises::Conditions::open_question) ==
        Verdict::held);
  CHECK_FALSE(promises.kept(1, Status::success, 10)->answered);
  CHECK(promises.promise(file(1), 2, {.offset = 10, .length = 10}) == Verdict::now);
}

TEST_CASE("whatever the order of answers, errors and ends, the audit adds up and no loss goes unreported") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    Promises promises;
    promises.set_line_rate(1);
    std::vector<std::pair<OpenKey, MessageNumber>> with_server;
    std::set<MessageNumber> answered;
    std::map<OpenKey, bool> lost;  // a loss of which the client does not know
    MessageNumber next = 1;
    for (int step = 0; step < 2000; ++step) {
      const OpenKey open = file(below(4));
      switch (below(6)) {
        case 0:
        case 1: {
          const MessageNumber message = next++;
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
          if (promises.settle(open, Carrier::flush, Status::success) != Status::success) {
            REQUIRE(lost[open]);
            lost[open] = false;
          } else {
            REQUIRE_FALSE(lost[open]);
          }
          break;
        default:
          if (promises.waiting(open) != 0) break;  // a CLOSE is held until then
          if (promises.settle(open, Carrier::close, Status::success) == Status::success)
            REQUIRE_FALSE(lost[open]);
          lost[open] = false;
          REQUIRE(promises.forget(open));
      }
      REQUIRE(promises.audit().adds_up());
      // A single write may exceed the bound; never two.
      REQUIRE(promises.outstanding_bytes() <= promises.bound_bytes());
    }
  }
}
