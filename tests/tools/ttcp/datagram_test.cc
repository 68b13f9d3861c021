// SPDX-License-Identifier: Apache-2.0
#include "tools/ttcp/datagram.h"

#include <array>
#include <catch2/catch.hpp>

using namespace longhaul::ttcp;
using Said = ClassicMarks::Said;

namespace {
std::vector<Said> reading_of(const std::vector<std::size_t>& sizes) {
  ClassicMarks marks;
  std::vector<Said> said;
  for (const std::size_t size : sizes) said.push_back(marks.on_datagram(size));
  return said;
}
}  // namespace

TEST_CASE("a classic ttcp's marks are read: one start, data, the first of the end marks") {
  CHECK(reading_of({4, 8192, 8192, 4}) == std::vector{Said::start, Said::data, Said::data, Said::end});
}

TEST_CASE("a lost start mark does not cost the end mark") {
  CHECK(reading_of({8192, 4}) == std::vector{Said::data, Said::end});
}

TEST_CASE("a repeated start mark is not the end, except if there is no data") {
  CHECK(reading_of({4, 4, 8192, 4}) == std::vector{Said::start, Said::start, Said::data, Said::end});
  CHECK(reading_of({4, 4, 4}) == std::vector{Said::start, Said::start, Said::end});
}

TEST_CASE("five bytes are data, up to four bytes are a mark") {
  CHECK(reading_of({5, 0}) == std::vector{Said::data, Said::end});
}

TEST_CASE("a sweep's datagrams contain their test and number, in a fixed format") {
  std::array<std::byte, kLabelBytes> label;
  write_label({0x01020304, 0x0506070809}, label);
  const std::array<unsigned char, kLabelBytes> expected{'L', 'H', 't', 't', 1, 2, 3, 4,
                                                        0,   0,   0,   5,   6, 7, 8, 9};
  for (std::size_t i = 0; i < kLabelBytes; ++i)
    CHECK(std::to_integer<unsigned char>(label[i]) == expected[i]);
  const auto read = parse_label(label);
  REQUIRE(read);
  CHECK(read->test == 0x01020304);
  CHECK(read->number == 0x0506070809);
}

TEST_CASE("other datagrams have no label") {
  std::array<std::byte, kLabelBytes> label;
  write_label({1, 2}, label);
  CHECK_FALSE(parse_label({label.data(), kLabelBytes - 1}));
  label[0] ^= std::byte{1};
  CHECK_FALSE(parse_label(label));
}
