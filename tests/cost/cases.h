// SPDX-License-Identifier: Apache-2.0
// Inputs that were once too cheap for what they caused, each as large as one likes. A case plays the peer of
// a machine and says how many bytes it had to send.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace longhaul::cost {

struct Case {
  std::string_view name;
  std::uint64_t steps_per_byte;  // the bound of the machine's README
  std::size_t size;              // how often, so that what grows faster than its input shows
  // Does something `size` times; answers what the peer paid for it, in bytes.
  std::uint64_t (*play)(std::size_t size);
};

// What is to be done in turns of the loop: however much there is, none takes more.
struct TurnCase {
  std::string_view name;
  std::uint64_t steps_per_turn;
  std::size_t size;
  // Plays with `size` of something; answers what the longest turn took.
  std::uint64_t (*play)(std::size_t size);
};

const std::vector<TurnCase>& turn_cases();
const std::vector<TurnCase>& history_turn_cases();
const std::vector<Case>& link_cases();
const std::vector<Case>& codec_cases();

}  // namespace longhaul::cost
