// SPDX-License-Identifier: Apache-2.0
// Sweeps over many values, which take minutes: tools/test runs the first and the last of each and one seed,
// tools/test --long all of them (LONGHAUL_WHOLE_SWEEPS=1).
#pragma once
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <numeric>
#include <vector>

namespace longhaul::test {

inline bool whole_sweeps() {
  const char* value = std::getenv("LONGHAUL_WHOLE_SWEEPS");
  return value && *value == '1';
}

template <class T>
std::vector<T> sweep(std::initializer_list<T> values) {
  if (whole_sweeps() || values.size() < 3) return values;
  return {*values.begin(), *(values.end() - 1)};
}

// 1 to `whole`, or 1 alone.
inline std::vector<std::uint64_t> seeds(std::uint64_t whole) {
  std::vector<std::uint64_t> all(whole_sweeps() ? whole : 1);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

}  // namespace longhaul::test
