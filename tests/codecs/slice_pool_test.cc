// SPDX-License-Identifier: Apache-2.0
#include "codecs/slice_pool.h"

#include <catch2/catch.hpp>
#include <thread>

namespace longhaul {
namespace {

TEST_CASE("only the memory of unreferenced slices is reused") {
  SlicePool pool(1000, 1);
  std::byte *first = nullptr, *second = nullptr, *third = nullptr;
  Slice one = pool.take(first);
  CHECK(one.size() == 1000);
  {
    Slice part = one.sub(10, 20);
    one = {};
    Slice two = pool.take(second);
    CHECK(second != first);  // a part of it is still held
  }
  // Both are free now, and one is kept.
  Slice again = pool.take(third);
  CHECK((third == first || third == second));
}

TEST_CASE("slices outlive their pool and may be released on any thread") {
  Slice left;
  std::byte* memory = nullptr;
  {
    SlicePool pool(64, 2);
    for (int i = 0; i < 100; ++i) {
      std::byte* filled = nullptr;
      Slice slice = pool.take(filled);
      std::memset(filled, i, 64);
      std::thread([slice = std::move(slice), i]() mutable {
        CHECK(slice.bytes()[63] == static_cast<std::byte>(i));
        slice = {};
      }).join();
    }
    left = pool.take(memory);
    pool.release();
  }
  std::memset(memory, 7, 64);
  CHECK(left.bytes()[63] == std::byte{7});
}

}  // namespace
}  // namespace longhaul
