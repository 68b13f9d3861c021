// SPDX-License-Identifier: Apache-2.0
// The count of what was executed: one for each basic block, for each allocation, and for each 16 bytes that a
// library moves or makes. No clock: the same input costs the same everywhere and every time.
#pragma once
#include <cstdint>

namespace longhaul::cost {

// Since the program began.
std::uint64_t steps();

// What is done while one lives does not count: the making of an input.
class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  std::uint64_t before_;
};

}  // namespace longhaul::cost
