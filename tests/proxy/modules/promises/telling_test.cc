// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/telling.h"

#include <catch2/catch.hpp>

namespace longhaul::promises {
namespace {

LostWrites::File named(int number) {
  const std::string digits = std::to_string(number);
  return {.ends = {}, .share = u"S", .path = u"F" + std::u16string(digits.begin(), digits.end()), .spelled = {}};
}

TEST_CASE("a client that opens lost files without reading the errors is told again, and costs bounded memory") {
  LostWrites lost;
  Telling telling(lost);
  constexpr auto kWrites = LostWrites::Use::writes;
  constexpr int kFiles = 100;
  for (int i = 0; i < kFiles; ++i) lost.add(named(i), {});
  for (int times = 0; times < 3; ++times)
    for (int i = 0; i < kFiles; ++i) CHECK(telling.tells(named(i), kWrites));
  telling.arrived(telling.awaited());
  (void)telling.client_goes_on();
  int left = 0;
  for (int i = 0; i < kFiles; ++i) left += lost.has(named(i), kWrites);
  CHECK(left == kFiles - 64);
  CHECK(lost.has(named(0), kWrites));
  CHECK_FALSE(lost.has(named(kFiles - 1), kWrites));
}

TEST_CASE("an error that is sent again counts as read once the later one has arrived") {
  LostWrites lost;
  Telling telling(lost);
  lost.add(named(1), {});
  CHECK(telling.tells(named(1), LostWrites::Use::writes));
  CHECK(telling.tells(named(1), LostWrites::Use::writes));
  telling.arrived(telling.awaited() - 1);
  (void)telling.client_goes_on();
  CHECK(lost.has(named(1), LostWrites::Use::writes));
  telling.arrived(telling.awaited());
  (void)telling.client_goes_on();
  CHECK_FALSE(lost.has(named(1), LostWrites::Use::writes));
}

}  // namespace
}  // namespace longhaul::promises
