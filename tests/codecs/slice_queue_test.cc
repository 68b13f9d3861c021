// SPDX-License-Identifier: Apache-2.0
#include "codecs/slice_queue.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

using namespace longhaul;

namespace {

std::string text_of(const SliceQueue& queue, Interval range) {
  Buffer bytes;
  queue.copy(range, bytes);
  return std::string(as_text(bytes));
}

std::size_t pieces_of(const SliceQueue& queue) {
  std::size_t pieces = 0;
  queue.visit({queue.begin_offset(), queue.end_offset()}, [&](Bytes piece) {
    CHECK_FALSE(piece.empty());
    return ++pieces, true;
  });
  return pieces;
}

}  // namespace

TEST_CASE("any order of pushes and drops reads as one continuous text") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    SliceQueue queue;
    std::string all;
    std::uint64_t begin = 0;
    std::size_t longest = seed % 3 == 0 ? 5 : seed % 3 == 1 ? 600 : 3000;
    for (int step = 0; step < 400; ++step) {
      if (random() % 2) {
        std::string piece(random() % longest, ' ');
        for (char& c : piece) c = static_cast<char>('a' + random() % 26);
        all += piece;
        if (random() % 2) {
          queue.push(Slice::copy_of(as_bytes(piece)));
        } else {
          queue.push_copy(as_bytes(piece));
        }
      } else {
        // Sometimes to where it is already, or before.
        std::uint64_t to = begin + random() % (all.size() - begin + 1);
        if (random() % 8 == 0) to = begin / 2;
        queue.drop_until(to);
        begin = std::max(begin, to);
      }
      INFO("seed " << seed << ", step " << step);
      REQUIRE(queue.begin_offset() == begin);
      REQUIRE(queue.end_offset() == all.size());
      REQUIRE(queue.size() == all.size() - begin);
      REQUIRE(queue.empty() == (begin == all.size()));
      std::uint64_t from = begin + random() % (all.size() - begin + 1);
      std::uint64_t to = from + random() % (all.size() - from + 1);
      REQUIRE(text_of(queue, {from, to}) == all.substr(from, to - from));
    }
  }
}

TEST_CASE("successive copies share few pieces, and bytes already seen stay valid") {
  SliceQueue queue;
  std::string all, packet(1400, ' ');
  std::vector<Bytes> seen;
  for (int i = 0; i < 100; ++i) {
    for (char& c : packet) c = static_cast<char>('a' + i % 26);
    all += packet;
    queue.push_copy(as_bytes(packet));
    queue.visit({queue.end_offset() - 1, queue.end_offset()},
                [&](Bytes byte) { return seen.push_back(byte), true; });
  }
  CHECK(text_of(queue, {0, all.size()}) == all);
  CHECK(pieces_of(queue) <= 12);
  REQUIRE(seen.size() == 100);
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(as_text(seen[i]) == all.substr(1400 * (i + 1) - 1, 1));
  // A shared slice behind them is not written into, nor is the room behind what was dropped.
  queue.push(Slice::copy_of(Buffer(5000, std::byte{'z'})));
  queue.push_copy(as_bytes("end"));
  CHECK(text_of(queue, {140'000, 145'003}) == std::string(5000, 'z') + "end");
  queue.drop_until(queue.end_offset());
  queue.push_copy(as_bytes("again"));
  CHECK(text_of(queue, {145'003, 145'008}) == "again");
}

TEST_CASE("a queue of single bytes is kept in few pieces") {
  SliceQueue queue;
  for (int i = 0; i < 10'000; ++i) queue.push(Slice::copy_of(as_bytes("x")));
  CHECK(queue.size() == 10'000);
  CHECK(pieces_of(queue) <= 10);
  // Large pieces are shared, not copied.
  Slice large = Slice::copy_of(Buffer(5000));
  queue.push(large);
  const std::byte* last = nullptr;
  queue.visit({10'000, 15'000}, [&](Bytes piece) { return last = piece.data(), true; });
  CHECK(last == large.bytes().data());
}

TEST_CASE("a visitor that stops is not called again") {
  SliceQueue queue;
  for (int i = 0; i < 3; ++i) queue.push(Slice::copy_of(Buffer(2000)));
  int visits = 0;
  queue.visit({0, 6000}, [&](Bytes) { return ++visits < 2; });
  CHECK(visits == 2);
}

TEST_CASE("a slice that the queue has dropped stays valid for other holders") {
  SliceQueue queue;
  Slice slice = Slice::copy_of(as_bytes("kept"));
  queue.push(slice);
  queue.drop_until(4);
  CHECK(queue.empty());
  CHECK(as_text(slice.bytes()) == "kept");
}

TEST_CASE("the first piece of a queue shares its memory and begins where the queue does") {
  SliceQueue queue;
  const Slice first = Slice::copy_of(Buffer(2000, std::byte{1}));
  queue.push(first);
  queue.push(Slice::copy_of(Buffer(3000, std::byte{2})));
  CHECK(queue.front().size() == 2000);
  CHECK(queue.front().bytes().data() == first.bytes().data());
  queue.drop_until(500);
  CHECK(queue.front().size() == 1500);
  CHECK(queue.front().bytes().data() == first.bytes().data() + 500);
  queue.drop_until(2000);
  CHECK(queue.front().size() == 3000);
  CHECK(queue.front().bytes()[0] == std::byte{2});
}
