// SPDX-License-Identifier: Apache-2.0
// The features: their values, the presets, and how the settings of two sites combine. Parsing is here too,
// because the file, the command line and the API share it. module_features.h has the features of application
// modules.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/config/module_features.h"
#include "proxy/config/path_policy.h"
#include "proxy/config/text_error.h"

namespace longhaul::config {

// In decreasing order of what they allow: `meet` takes the later of two.
enum class Transport : std::uint8_t { automatic, udp, tcp, off };

struct Fec {
  enum class Mode : std::uint8_t { off, adaptive, fixed } mode = Mode::adaptive;
  std::uint8_t source_packets = 0;  // K of K:M, only with Mode::fixed; 1 to 254
  std::uint8_t repair_packets = 0;  // M of K:M; 1 to 254, K + M <= 255
  bool operator==(const Fec&) const = default;
};

struct Features {
  Transport transport = Transport::automatic;
  std::uint32_t window_bytes = 0;  // 0: automatic; otherwise a fixed limit on one flow's bytes in flight
  bool fast_connect = true;
  bool compression = true;
  bool dedup_memory = true;
  bool dedup_disk = true;
  Fec fec;
  PathUse paths = PathUse::automatic;  // of several lines to the peer
  ModuleFeatures modules{};
  bool operator==(const Features&) const = default;
};

// The defaults of a program with these modules, which are preset A+F.
Features standard_features(const FeatureTable& modules);

// Every name that `set_feature` accepts, in the order of the documentation, "preset" first.
std::vector<std::string_view> feature_names(const FeatureTable& modules);

// A preset sets every feature at once, including those that a user has changed; `window` and `paths` become
// auto.
//
//          transport  fast_connect  compression, dedup  fec       modules
//   B      off        false         false               off       false     relayed by this proxy alone
//   T      auto       true          true                off       false
//   A      auto       true          true                off       standard  ModuleFeature::standard
//   F      udp        true          false               adaptive  false
//   A+F    auto       true          true                adaptive  standard  the defaults
//
// F requires UDP, because it serves to measure repair on a lossy line; A+F uses UDP if the network passes it.
// Returns nullopt if the text is no preset.
std::optional<Features> preset(std::string_view letters, const FeatureTable& modules);
// The preset with these values; empty if there is none.
std::string_view preset_of(const Features& features);

// Changes one feature by the name and value a user types ("compression", "true"; "fec", "10:2"; "preset",
// "A+F"). On error nothing is changed; the message lists the accepted values.
using FeatureError = TextError;
TextResult<void> set_feature(Features& features, std::string_view name, std::string_view value);

// " There is no module of that name ...", for the error about an unknown name.
std::string modules_named(const FeatureTable& modules);

// NAME=VALUE for every value that has a name of its own, for completion; `set_feature` accepts each.
std::vector<std::string> settings_with_names(const FeatureTable& modules);

// Every feature with its value as text, in the order of the documentation; `set_feature` accepts each.
std::vector<std::pair<std::string_view, std::string>> to_text(const Features& features);

// Switches the parts of a feature off if the feature is off.
Features without_idle_parts(Features features);

// The features that both sides allow. The order of the two makes no difference, so both sides get the same
// result.
Features meet(const Features& asked, const Features& allowed);

}  // namespace longhaul::config
