// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/second_copies.h"

#include <catch2/catch.hpp>

#include "numbers.h"

using namespace longhaul;
using namespace longhaul::link;

TEST_CASE("copies wait for their carrier alone, in order, and can be taken in pieces") {
  SecondCopies copies;
  copies.add(1_stream, {0_offset, 100_offset});  // no carrier
  copies.send_on(CarrierId(2));
  CHECK_FALSE(copies.wait_for(CarrierId(2)));
  copies.add(1_stream, {0_offset, 100_offset});
  copies.add(3_stream, {50_offset, 60_offset});
  CHECK_FALSE(copies.wait_for(CarrierId(1)));
  REQUIRE(copies.wait_for(CarrierId(2)));
  copies.taken(40_offset);
  CHECK(copies.front().bytes == StreamRange{40_offset, 100_offset});
  copies.taken(1000_offset);
  CHECK(copies.front().stream == 3_stream);
  copies.send_on(CarrierId(2));
  CHECK(copies.wait_for(CarrierId(2)));
  copies.send_on(CarrierId(3));
  CHECK_FALSE(copies.wait_for(CarrierId(3)));
}

TEST_CASE("copies that would delay each other are dropped") {
  SecondCopies copies;
  copies.send_on(CarrierId(2));
  for (int i = 0; i < 1000; ++i) copies.add(1_stream, {0_offset, 1000_offset});
  std::uint64_t waiting = 0;
  while (copies.wait_for(CarrierId(2))) {
    waiting += copies.front().bytes.size();
    copies.taken(copies.front().bytes.end);
  }
  CHECK(waiting <= SecondCopies::kMostBytes);
  CHECK(waiting > SecondCopies::kMostBytes - 1000);
  copies.add(1_stream, {0_offset, 1000_offset});
  CHECK(copies.wait_for(CarrierId(2)));
}

TEST_CASE("a stream with much in flight is not copied") {
  constexpr StreamOffset kLittle(SecondCopies::kLittleInFlight);
  SendStream stream;
  stream.append(Slice::copy_of(Buffer(100'000)));
  stream.on_sent({0_offset, kLittle}, CarrierId(1));
  CHECK(SecondCopies::worth_it(stream));
  stream.on_sent({kLittle, kLittle + 1}, CarrierId(1));
  CHECK_FALSE(SecondCopies::worth_it(stream));
  stream.on_acknowledged(1_offset);
  CHECK(SecondCopies::worth_it(stream));
}
