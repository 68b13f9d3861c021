// SPDX-License-Identifier: Apache-2.0
// What the lists of cases about writes have in common: rules by the words of their violation, and bounds.
#pragma once
#include <string>
#include <utility>

#include "tests/model/cases.h"
#include "tests/model/writes.h"

namespace longhaul::model {

inline constexpr const char* kMissing = "an acknowledged block is missing";
inline constexpr const char* kFlush = "FLUSH was answered before";
inline constexpr const char* kTwice = "one loss was told twice";

inline constexpr Design kEverything{.writes_records_at_once = true, .shares_records = true};

inline Case make(std::string sentence, const char* breaks, const Design& design, const Bounds& bounds) {
  return {std::move(sentence), breaks,
          [design, bounds](std::size_t most) { return Explorer(Writes(design, bounds), most).run(); }};
}

constexpr std::uint16_t operator|(Failure a, Failure b) {
  return static_cast<std::uint16_t>(only(a) | only(b));
}

// One failure, of one kind; programs that write and close, so that FLUSH hides nothing.
constexpr Bounds one(Failure failure, Policy policy = Policy::continues) {
  return {.policy = policy, .flushes = false, .failures = 1, .kinds = only(failure)};
}
constexpr Bounds two(std::uint16_t kinds, Policy policy = Policy::continues) {
  return {.policy = policy, .flushes = false, .failures = 2, .kinds = kinds, .fails_open = false};
}

}  // namespace longhaul::model
