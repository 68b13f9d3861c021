// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/types.h"

#include <catch2/catch.hpp>
#include <type_traits>

using namespace longhaul::link;

// Free of charge, and nothing but itself.
static_assert(sizeof(CarrierId) == sizeof(std::uint32_t) && std::is_trivially_copyable_v<CarrierId>);
static_assert(!std::is_convertible_v<std::uint32_t, CarrierId> &&
              !std::is_convertible_v<CarrierId, std::uint32_t>);
static_assert(!std::is_convertible_v<CarrierId, Id<struct AnotherKind, std::uint32_t>>);

TEST_CASE("ids count up from none, and are compared") {
  CarrierId last;
  CHECK(last == kNoCarrier);
  const CarrierId first = ++last;
  CHECK(first != kNoCarrier);
  CHECK(++last > first);
  CHECK(last.number() == 2);
}
