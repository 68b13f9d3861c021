// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/reassembly.h"

#include <catch2/catch.hpp>
#include <random>

using namespace longhaul;
using namespace longhaul::link;

namespace {

std::byte byte_at(std::uint64_t position) { return std::byte((position * 2654435761u) >> 7 & 0xff); }

Buffer bytes_at(std::uint64_t begin, std::uint64_t end) {
  Buffer bytes;
  for (std::uint64_t i = begin; i < end; ++i) bytes.push_back(byte_at(i));
  return bytes;
}

// Checks each byte as it comes out.
struct Checked {
  Result<void> insert(std::uint64_t begin, std::uint64_t end, std::uint64_t room = 1 << 20) {
    return reassembly.insert(StreamOffset(begin), bytes_at(begin, end), room,
                             [this](Bytes fresh) -> Result<void> {
                               for (std::byte b : fresh) right &= b == byte_at(out++);
                               return {};
                             });
  }
  Reassembly reassembly;
  std::uint64_t out = 0;
  bool right = true;
};

}  // namespace

TEST_CASE("every byte is delivered once and in order for any splits, orders and repetitions") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    constexpr std::uint64_t kTotal = 600;
    std::uint64_t longest = seed % 3 == 0 ? 1 : 1 + random() % 100;
    Checked checked;
    std::vector<bool> there(kTotal, false);
    std::uint64_t contiguous = 0;
    for (int i = 0; i < 100'000 && contiguous < kTotal; ++i) {
      std::uint64_t begin = random() % kTotal;
      std::uint64_t end = std::min(kTotal, begin + 1 + random() % longest);
      REQUIRE(checked.insert(begin, end));
      // The obvious way: a flag for each byte.
      std::fill(there.begin() + static_cast<long>(begin), there.begin() + static_cast<long>(end), true);
      while (contiguous < kTotal && there[contiguous]) ++contiguous;
      INFO("seed " << seed << ", step " << i);
      REQUIRE(checked.out == contiguous);
      REQUIRE(checked.reassembly.contiguous().number() == contiguous);
      std::uint64_t waiting = static_cast<std::uint64_t>(
          std::count(there.begin() + static_cast<long>(contiguous), there.end(), true));
      REQUIRE(checked.reassembly.waiting_cost() >= waiting);
      REQUIRE((checked.reassembly.waiting_cost() == 0) == (waiting == 0));
    }
    CHECK(checked.right);
    CHECK(checked.out == kTotal);
    CHECK(checked.reassembly.waiting_cost() == 0);
  }
}

TEST_CASE("repeated bytes take no additional room") {
  Checked checked;
  REQUIRE(checked.insert(100, 1100));
  std::uint64_t cost = checked.reassembly.waiting_cost();
  for (std::uint64_t i = 0; i < 900; ++i) REQUIRE(checked.insert(100 + i, 200 + i, 0));
  CHECK(checked.reassembly.waiting_cost() == cost);
}

TEST_CASE("adjacent pieces behind a gap cost little more than their bytes") {
  Checked checked;
  for (std::uint64_t i = 1; i < 10'000; ++i) REQUIRE(checked.insert(i, i + 1));
  CHECK(checked.reassembly.waiting_cost() < 11'000);
  REQUIRE(checked.insert(0, 1));
  CHECK(checked.out == 10'000);
  CHECK(checked.right);
}

TEST_CASE("more bytes than fit is an error") {
  Checked checked;
  CHECK_FALSE(checked.insert(1, 1001, 1000));
  Checked other;
  REQUIRE(other.insert(1, 1001, 1200));
  CHECK(other.insert(2000, 2001, 10).error() == LinkError::too_fragmented);
  // What closes the gap needs no room.
  Checked third;
  REQUIRE(third.insert(1, 1001, 1200));
  REQUIRE(third.insert(0, 1, 0));
  CHECK(third.out == 1001);
}

TEST_CASE("an error of the reader is returned and nothing more is delivered") {
  Reassembly reassembly;
  int calls = 0;
  auto failing = [&](Bytes) -> Result<void> {
    ++calls;
    return LinkError::malformed_record;
  };
  REQUIRE(reassembly.insert(StreamOffset(1), Buffer(1), 1000, failing));
  CHECK_FALSE(reassembly.insert(StreamOffset(0), Buffer(1), 1000, failing));
  CHECK(calls == 1);
}
