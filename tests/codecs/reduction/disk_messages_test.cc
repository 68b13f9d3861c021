// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/disk_messages.h"

#include <catch2/catch.hpp>

#include "codecs/reduction/encoded_block.h"
#include "codecs/reduction/segments.h"

namespace longhaul::reduction {
namespace {

constexpr std::uint64_t kBlockAt = kRingStart + (64u << 20);

Result<std::vector<Load>> parsed(const std::vector<Load>& loads) {
  Buffer written;
  for (const Load& load : loads) write_load(load, written);
  return parse_loads(written, kBlockAt);
}

// The body, behind the type.
Bytes body_of(const Slice& message) { return message.bytes().subspan(1); }

TEST_CASE("the loads of a block are read as they were written") {
  const std::vector<Load> loads{
      {.segment = ~0ull, .offset = 0, .length = 1, .ring_offset = kRingStart},
      {.segment = 7, .offset = kMaxSegmentBytes, .length = kLoadBytes, .ring_offset = kBlockAt - kLoadBytes}};
  auto read = parsed(loads);
  REQUIRE(read.has_value());
  CHECK(*read == loads);
  CHECK(parsed({})->empty());
  Buffer torn;
  write_load(loads[1], torn);
  for (std::size_t size = 1; size < torn.size(); ++size)
    CHECK_FALSE(parse_loads(Bytes(torn).first(size), kBlockAt).has_value());
}

TEST_CASE("loads outside of a segment, of the history before the block, or too many of them are errors") {
  const Load good{.segment = 1, .offset = 5, .length = kLoadBytes, .ring_offset = kRingStart};
  REQUIRE(parsed({good}).has_value());
  auto with = [&](auto change) {
    Load load = good;
    change(load);
    return parsed({load}).has_value();
  };
  CHECK_FALSE(with([](Load& l) { l.length = 0; }));
  CHECK_FALSE(with([](Load& l) { l.length = kLoadBytes + 1; }));
  CHECK_FALSE(with([](Load& l) { l.offset = kMaxSegmentBytes + 1; }));
  CHECK_FALSE(with([](Load& l) { l.ring_offset = kRingStart - 1; }));
  CHECK_FALSE(with([](Load& l) { l.ring_offset = kBlockAt - kLoadBytes + 1; }));
  CHECK_FALSE(with([](Load& l) { l.ring_offset = kMaxVarint; }));

  Load small = good;
  small.length = 10;
  CHECK(parsed(std::vector<Load>(kMaxLoads, small)).has_value());
  CHECK_FALSE(parsed(std::vector<Load>(kMaxLoads + 1, small)).has_value());
  CHECK(parsed(std::vector<Load>(kMaxLoadedBytes / kLoadBytes, good)).has_value());
  CHECK_FALSE(parsed(std::vector<Load>(kMaxLoadedBytes / kLoadBytes + 1, good)).has_value());
}

TEST_CASE("messages about segments are read as they were written, and shorter ones are errors") {
  SealedRange range{.first = 1u << 30, .length = kMinSealedBytes};
  range.digest.fill(std::byte{0x5a});
  const Load load{.segment = 3, .length = kLoadBytes, .ring_offset = 1u << 20};
  const Slice sealed = sealed_message(range), cannot = cannot_message(load),
              forgotten = forgotten_message(1ull << 40);
  CHECK(sealed.bytes()[0] == std::byte{11});
  CHECK(cannot.bytes()[0] == std::byte{12});
  CHECK(forgotten.bytes()[0] == std::byte{16});
  REQUIRE(parse_sealed(body_of(sealed)).has_value());
  CHECK(*parse_sealed(body_of(sealed)) == range);
  REQUIRE(parse_cannot(body_of(cannot)).has_value());
  CHECK(*parse_cannot(body_of(cannot)) == load);
  CHECK(*parse_forgotten(body_of(forgotten)) == 1ull << 40);
  for (std::size_t size = 0; size < body_of(sealed).size(); ++size)
    CHECK_FALSE(parse_sealed(body_of(sealed).first(size)).has_value());
  for (std::size_t size = 0; size < body_of(cannot).size(); ++size)
    CHECK_FALSE(parse_cannot(body_of(cannot).first(size)).has_value());
  for (std::size_t size = 0; size < body_of(forgotten).size(); ++size)
    CHECK_FALSE(parse_forgotten(body_of(forgotten).first(size)).has_value());
  CHECK(plain_message(DiskMessage::remember).bytes()[0] == std::byte{13});
  CHECK(plain_message(DiskMessage::forget).size() == 1);
}

TEST_CASE("lengths that no segment and no load can have are errors") {
  for (std::uint32_t length : {kMinSealedBytes - 1, kMaxSegmentBytes + 1})
    CHECK_FALSE(parse_sealed(body_of(sealed_message({.first = 1, .length = length}))).has_value());
  CHECK_FALSE(parse_cannot(body_of(cannot_message({.segment = 1, .length = kLoadBytes + 1}))).has_value());
}

}  // namespace
}  // namespace longhaul::reduction
