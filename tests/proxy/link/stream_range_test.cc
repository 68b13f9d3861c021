// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_range.h"

#include <catch2/catch.hpp>
#include <type_traits>

#include "numbers.h"

using namespace longhaul;
using namespace longhaul::link;

TEST_CASE("a range of a stream has a size, and the same numbers as an interval") {
  const StreamRange range{10_offset, 30_offset};
  CHECK(range.size() == 20);
  CHECK_FALSE(range.empty());
  CHECK(StreamRange{10_offset, 10_offset}.empty());
  CHECK(StreamRange{30_offset, 10_offset}.empty());
  CHECK(range.numbers() == Interval{10, 30});
  CHECK(StreamRange::of({10, 30}) == range);
  CHECK(StreamRange().size() == 0);
}

TEST_CASE("an offset cannot be taken for a count, nor for a place in another sequence") {
  CHECK_FALSE(std::is_convertible_v<std::uint64_t, StreamOffset>);
  CHECK_FALSE(std::is_convertible_v<StreamOffset, std::uint64_t>);
  CHECK_FALSE(std::is_constructible_v<StreamOffset, udp::PacketNumber>);
  CHECK_FALSE(std::is_constructible_v<StreamOffset, StreamId>);
  CHECK(sizeof(StreamOffset) == sizeof(std::uint64_t));
}
