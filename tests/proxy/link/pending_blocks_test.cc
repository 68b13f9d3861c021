// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/pending_blocks.h"

#include <catch2/catch.hpp>
#include <random>

using namespace longhaul;
using namespace longhaul::link;

namespace {

Slice slice(std::size_t bytes) { return Slice::copy_of(Buffer(bytes)); }

// The sizes of all blocks that are made of what waits, where nothing is sent in between.
std::vector<std::size_t> blocks(PendingBlocks& pending, std::size_t first) {
  std::vector<std::size_t> sizes;
  while (std::size_t size = pending.next_block(first)) {
    sizes.push_back(size);
    pending.on_block(size);
    pending.drop(size);
  }
  return sizes;
}

}  // namespace

TEST_CASE("the blocks of a backlog double in size from the first one up to 64 KiB") {
  PendingBlocks pending;
  for (int i = 0; i < 40; ++i) pending.write(Buffer(5000));
  const auto sizes = blocks(pending, 1400);
  REQUIRE(sizes.size() > 7);
  CHECK(sizes[0] == 1400);
  for (std::size_t i = 1, largest = sizes[0]; i < sizes.size(); ++i) {
    CHECK(sizes[i] <= 2 * largest);
    CHECK(sizes[i] <= kMaxBlockPlainBytes);
    largest = std::max(largest, sizes[i]);
  }
  CHECK(*std::max_element(sizes.begin(), sizes.end()) > 48 * 1024);
}

TEST_CASE("after a pause the next block has the initial size, which is large on a fast line") {
  PendingBlocks pending;
  pending.write(Buffer(200'000));
  (void)blocks(pending, 1400);
  pending.write(Buffer(20'000));
  CHECK(pending.next_block(1400) == 20'000);
  pending.on_quiet();
  CHECK(pending.next_block(1400) == 1400);
  CHECK(pending.next_block(1 << 20) == 20'000);
}

TEST_CASE("blocks end where large reads end, so that no bytes are gathered") {
  PendingBlocks pending;
  for (int i = 0; i < 10; ++i) pending.write(slice(64 * 1024));
  const auto sizes = blocks(pending, 1400);
  // Once the blocks are as large as the reads they stay in step with them.
  CHECK(std::count(sizes.begin(), sizes.end(), 64 * 1024) >= 8);
}

TEST_CASE("no block has isolated bytes together with others") {
  PendingBlocks pending;
  pending.write(Buffer(100), true);
  pending.write(Buffer(50), true);
  pending.write(Buffer(30));
  pending.write(slice(20), true);
  CHECK(pending.front_is_isolated());
  CHECK(pending.next_block(1400) == 150);
  pending.drop(120);
  CHECK(pending.front_is_isolated());
  CHECK(pending.next_block(1400) == 30);
  pending.drop(30);
  CHECK_FALSE(pending.front_is_isolated());
  CHECK(pending.next_block(1400) == 30);
  pending.write(Buffer(5));
  CHECK(pending.take(30).size() == 30);
  CHECK(pending.front_is_isolated());
  CHECK(pending.next_block(1400) == 20);
  SECTION("nor after all were dropped") {
    pending.clear();
    pending.write(Buffer(10));
    CHECK_FALSE(pending.front_is_isolated());
    CHECK(pending.next_block(1400) == 10);
  }
  SECTION("nor when they alternate for long while some always wait") {
    for (int i = 0; i < 1000; ++i) {
      pending.write(Buffer(3), i % 2 == 1);
      pending.drop(pending.next_block(1400));
      CHECK(pending.front_is_isolated() == (i % 2 == 1));
      CHECK(pending.next_block(1400) <= 8);
    }
  }
}

TEST_CASE("records keep their position between the bytes") {
  PendingBlocks pending;
  CHECK(pending.empty());
  pending.write(Buffer(100));
  pending.write_record(slice(3));
  pending.write_record(slice(4));
  pending.write(Buffer(50));
  pending.write_record(slice(5));
  CHECK(pending.size() == 162);
  CHECK_FALSE(pending.take_record());
  CHECK(pending.next_block(1400) == 100);
  pending.drop(100);
  CHECK(pending.next_block(1400) == 0);
  CHECK(pending.take_record()->size() == 3);
  CHECK(pending.take_record()->size() == 4);
  CHECK_FALSE(pending.take_record());
  CHECK(pending.next_block(1400) == 50);
  CHECK(pending.take(20).size() == 20);
  CHECK(pending.take(30).size() == 30);
  CHECK_FALSE(pending.empty());
  CHECK(pending.take_record()->size() == 5);
  CHECK(pending.empty());
}

TEST_CASE("blocks contain the bytes of all pieces in order") {
  std::mt19937_64 random(1);
  PendingBlocks pending;
  std::uint8_t written = 0, read = 0;
  bool right = true;
  for (int step = 0; step < 3000; ++step) {
    Buffer bytes(1 + random() % (random() % 4 ? 300 : 70'000));
    for (std::byte& b : bytes) b = std::byte{written++};
    if (random() % 2) {
      pending.write(bytes);
    } else {
      pending.write(Slice::copy_of(bytes));
    }
    while (random() % 3 || pending.size() > 300'000) {
      const std::size_t size = pending.next_block(1400);
      if (size == 0) break;
      REQUIRE(size <= kMaxBlockPlainBytes);
      pending.on_block(size);
      if (random() % 4) {
        const Bytes block = pending.front(size);
        REQUIRE(block.size() == size);
        for (std::byte b : block) right &= b == std::byte{read++};
        pending.drop(size);
      } else {
        for (std::size_t left = size; left > 0;) {
          const Slice piece = pending.take(left);
          for (std::byte b : piece.bytes()) right &= b == std::byte{read++};
          left -= piece.size();
        }
      }
      REQUIRE(right);
    }
  }
}
