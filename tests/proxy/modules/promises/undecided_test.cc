// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/undecided.h"

#include <catch2/catch.hpp>
#include <map>

#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::promises {

TEST_CASE("held requests are decided when it is known whether they may be promised, each once") {
  Ledger ledger;
  Undecided undecided;
  std::map<OpenKey, std::optional<bool>> may_be;
  const auto review = [&] {
    return undecided.review(ledger, [&](const OpenKey& open) { return may_be[open]; });
  };
  for (std::uint64_t each = 1; each <= 3; ++each) {
    const OpenKey open{.session = each};
    const MessageNumber number{each};
    REQUIRE(ledger.promise(open, number, {.offset = 0, .length = 10}, Ledger::Conditions::open_question) ==
            Ledger::Verdict::held);
    undecided.hold(number, open);
  }
  CHECK_FALSE(review());
  CHECK_FALSE(ledger.poll_answerable());
  may_be[{.session = 1}] = true;
  may_be[{.session = 2}] = false;
  CHECK(review());
  CHECK(ledger.poll_answerable() == 1_number);
  CHECK_FALSE(ledger.poll_answerable());
  CHECK_FALSE(review());
  ledger.kept(3_number, Ledger::Outcome::success, 10);  // the server was faster
  CHECK(review());
  may_be[{.session = 3}] = true;
  CHECK_FALSE(review());
}

TEST_CASE("a flow holds a bounded number of undecided requests") {
  Undecided undecided;
  for (MessageNumber number = 1_number; number <= MessageNumber{Undecided::kMost}; ++number) {
    CHECK_FALSE(undecided.is_full());
    undecided.hold(number, {});
  }
  CHECK(undecided.is_full());
}

}  // namespace longhaul::promises
