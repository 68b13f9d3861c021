// SPDX-License-Identifier: Apache-2.0
// What a user sets on the line, by name, for one direction or both. Leaves what it means for packets to
// link.h.
#pragma once
#include <array>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "tools/wan/link.h"

namespace longhaul::wan {

struct QueueSize {
  enum class Unit { automatic, bytes, time, round_trips } unit = Unit::automatic;
  double amount = 0;  // bytes, seconds, or multiples of rate × round trip time
  std::string text = "auto";
};

struct DirectionSettings {
  LinkConfig line;  // without queue_bytes, which depends on the other direction's delay
  QueueSize queue;
  bool ecn = false;                    // for line.aqm, whichever is set first
  std::optional<Duration> reorder_by;  // absent: as long as four large packets take, at least 1 ms
};

struct LineSettings {
  DirectionSettings a_to_b;
  DirectionSettings b_to_a;
  std::uint64_t seed = 1;
};

struct SettingName {
  std::string_view name;
  std::string_view help;
};
// Each may be prefixed by "a-to-b-" or "b-to-a-" to mean one direction only.
extern const std::array<SettingName, 13> kSettingNames;

// Changes one setting by name. The answer is a sentence if name or value is wrong; then nothing has changed.
[[nodiscard]] std::optional<std::string> apply(LineSettings& settings, std::string_view name,
                                               std::string_view value);

struct LineConfig {
  LinkConfig a_to_b;
  LinkConfig b_to_a;
};
LineConfig resolve(const LineSettings& settings);

// The settings in force, with what was derived from them.
boost::json::object to_json(const LinkConfig& config);

}  // namespace longhaul::wan
