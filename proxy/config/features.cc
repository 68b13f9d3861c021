// SPDX-License-Identifier: Apache-2.0
// The table of features: their names, how each is parsed and printed, and how the settings of two sites
// combine.
#include "proxy/config/features.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "proxy/config/suggest.h"
#include "proxy/config/units.h"

namespace longhaul::config {
namespace {

// Below 1 KiB a window is smaller than one packet; above 1 GiB it exceeds the largest window of TCP.
constexpr std::uint64_t kSmallestWindow = 1024, kLargestWindow = 1ull << 30;

constexpr std::array<std::string_view, 4> kTransportNames{"auto", "udp", "tcp", "off"};  // by Transport

constexpr std::array<std::string_view, 4> kPathsNames{"auto", "sum", "best", "failover"};  // by PathUse

struct Switch {
  std::string_view name;
  bool Features::*value;
};
// In the order of the documentation.
constexpr std::array kSwitches{
    Switch{"fast_connect", &Features::fast_connect}, Switch{"compression", &Features::compression},
    Switch{"dedup_memory", &Features::dedup_memory}, Switch{"dedup_disk", &Features::dedup_disk}};
// The features of the proxy itself; those of modules follow.
constexpr std::array<std::string_view, 9> kNames{"preset",       "transport",   "window",
                                                 "fast_connect", "compression", "dedup_memory",
                                                 "dedup_disk",   "fec",         "paths"};

constexpr std::array<std::string_view, 5> kPresets{"A+F", "A", "T", "F", "B"};

Features all_off(const FeatureTable& modules) {
  Features none;
  for (const Switch& s : kSwitches) none.*s.value = false;
  none.transport = Transport::off;
  none.fec = {.mode = Fec::Mode::off};
  none.modules = ModuleFeatures(modules);
  return none;
}

Features transport_only(Transport transport, Fec::Mode fec, const FeatureTable& modules) {
  Features features = all_off(modules);
  features.transport = transport;
  features.fast_connect = true;
  features.fec.mode = fec;
  return features;
}

Features reduction(const FeatureTable& modules) {
  Features features = transport_only(Transport::automatic, Fec::Mode::off, modules);
  features.compression = features.dedup_memory = features.dedup_disk = true;
  return features;
}

Features with_modules(Fec::Mode fec, const FeatureTable& modules) {
  Features features = reduction(modules);
  features.modules = ModuleFeatures::standard(modules);
  features.fec.mode = fec;
  return features;
}

std::optional<std::uint8_t> parse_count(std::string_view text) {
  std::uint8_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count == 0) return std::nullopt;
  return count;
}

std::optional<Fec> parse_fec(std::string_view text) {
  if (text == "off") return Fec{.mode = Fec::Mode::off};
  if (text == "adaptive") return Fec{.mode = Fec::Mode::adaptive};
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto source = parse_count(text.substr(0, colon)), repair = parse_count(text.substr(colon + 1));
  if (!source || !repair || *source + *repair > 255) return std::nullopt;
  return Fec{Fec::Mode::fixed, *source, *repair};
}

std::string print_fec(const Fec& fec) {
  switch (fec.mode) {
    case Fec::Mode::off:
      return "off";
    case Fec::Mode::adaptive:
      return "adaptive";
    case Fec::Mode::fixed:
      break;
  }
  return std::to_string(fec.source_packets) + ":" + std::to_string(fec.repair_packets);
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "true" || text == "on") return true;
  if (text == "false" || text == "off") return false;
  return std::nullopt;
}

// The index of a module feature's value. As for a switch, "true" means the first value above off.
std::optional<std::uint8_t> parse_value(const ModuleFeature& feature, std::string_view text) {
  const auto found = std::ranges::find(feature.values, text);
  if (found != feature.values.end()) return static_cast<std::uint8_t>(found - feature.values.begin());
  const auto on = parse_switch(text);
  return on ? std::optional(static_cast<std::uint8_t>(*on)) : std::nullopt;
}

// "strict, relaxed or false", or "true or false" for a switch.
std::string accepted_values(const ModuleFeature& feature) {
  std::string list;
  for (std::size_t i = 1; i < feature.values.size(); ++i)
    (list += i > 1 ? ", " : "") += feature.values[i];
  return list + " or " + std::string(feature.values.front());
}

FeatureError wrong_value(std::string_view name, std::string_view value, std::string_view accepted) {
  return {std::string(name) + " cannot be \"" + std::string(value) + "\"; it must be " + std::string(accepted) +
          "."};
}

// The setting that sends fewer repair packets. A total order (off, then by M/K, then by K, then adaptive), so
// that any number of settings combine to the same value in any order.
Fec meet(const Fec& a, const Fec& b) {
  if (a.mode == Fec::Mode::off || b.mode == Fec::Mode::adaptive) return a;
  if (b.mode == Fec::Mode::off || a.mode == Fec::Mode::adaptive) return b;
  const int a_overhead = a.repair_packets * b.source_packets,
            b_overhead = b.repair_packets * a.source_packets;
  if (a_overhead != b_overhead) return a_overhead < b_overhead ? a : b;
  return a.source_packets <= b.source_packets ? a : b;
}

}  // namespace

Features standard_features(const FeatureTable& modules) { return with_modules(Fec::Mode::adaptive, modules); }

std::vector<std::string_view> feature_names(const FeatureTable& modules) {
  std::vector<std::string_view> names(kNames.begin(), kNames.end());
  for (const ModuleFeature& row : modules.rows()) names.push_back(row.name);
  return names;
}

std::optional<Features> preset(std::string_view letters, const FeatureTable& modules) {
  if (letters == "B") return all_off(modules);
  if (letters == "T") return reduction(modules);
  if (letters == "A") return with_modules(Fec::Mode::off, modules);
  if (letters == "F") return transport_only(Transport::udp, Fec::Mode::adaptive, modules);
  if (letters == "A+F") return standard_features(modules);
  return std::nullopt;
}

std::string_view preset_of(const Features& features) {
  const auto found = std::ranges::find_if(
      kPresets, [&](std::string_view letters) { return preset(letters, features.modules.table()) == features; });
  return found == kPresets.end() ? std::string_view() : *found;
}

std::string modules_named(const FeatureTable& modules) {
  std::string list;
  for (const ModuleFeature& row : modules.rows())
    if (row.name.find('.') == row.name.npos) (list += list.empty() ? "" : ", ") += row.name;
  return list.empty() ? " This program has no modules." : " There is no module of that name in this program, which has: " + list + ".";
}

TextResult<void> set_feature(Features& features, std::string_view name, std::string_view value) {
  if (name == "preset") {
    const auto chosen = preset(value, features.modules.table());
    if (!chosen) return wrong_value(name, value, "B, T, A, F or A+F");
    features = *chosen;
    return {};
  }
  if (name == "transport") {
    const auto found = std::find(kTransportNames.begin(), kTransportNames.end(), value);
    if (found == kTransportNames.end()) return wrong_value(name, value, "auto, udp, tcp or off");
    features.transport = static_cast<Transport>(found - kTransportNames.begin());
    return {};
  }
  if (name == "window") {
    if (value == "auto") {
      features.window_bytes = 0;
      return {};
    }
    const auto bytes = parse_size(value);
    if (!bytes || *bytes < kSmallestWindow || *bytes > kLargestWindow)
      return wrong_value(name, value, "auto, or bytes from 1024 to 1GiB, such as 65535 or 4MiB");
    features.window_bytes = static_cast<std::uint32_t>(*bytes);
    return {};
  }
  if (name == "fec") {
    const auto fec = parse_fec(value);
    if (!fec)
      return wrong_value(
          name, value,
          "off, adaptive, or K:M (M repair packets for K packets, each at least 1, together at "
          "most 255)");
    features.fec = *fec;
    return {};
  }
  if (name == "paths") {
    const auto found = std::ranges::find(kPathsNames, value);
    if (found == kPathsNames.end()) return wrong_value(name, value, "auto, sum, best or failover");
    features.paths = static_cast<PathUse>(found - kPathsNames.begin());
    return {};
  }
  if (const auto own = std::ranges::find(kSwitches, name, &Switch::name); own != kSwitches.end()) {
    const auto on = parse_switch(value);
    if (!on) return wrong_value(name, value, "true or false");
    features.*own->value = *on;
    return {};
  }
  const FeatureTable& table = features.modules.table();
  const auto row = table.find(name);
  if (!row) return FeatureError{"Unknown feature \"" + std::string(name) + "\"." +
                                did_you_mean(name, feature_names(table), modules_named(table))};
  const auto chosen = parse_value(table.rows()[*row], value);
  if (!chosen) return wrong_value(name, value, accepted_values(table.rows()[*row]));
  features.modules.set(*row, *chosen);
  return {};
}

std::vector<std::string> settings_with_names(const FeatureTable& modules) {
  std::vector<std::string> settings;
  const auto add = [&](std::string_view name, auto values) {
    for (const std::string_view value : values) settings.push_back(std::string(name) + '=' + std::string(value));
  };
  add("preset", kPresets);
  add("transport", kTransportNames);
  add("window", std::array<std::string_view, 1>{"auto"});
  for (const Switch& s : kSwitches) add(s.name, ModuleFeature::kSwitch);
  add("fec", std::array<std::string_view, 2>{"off", "adaptive"});
  add("paths", kPathsNames);
  for (const ModuleFeature& row : modules.rows()) add(row.name, row.values);
  return settings;
}

std::vector<std::pair<std::string_view, std::string>> to_text(const Features& features) {
  std::vector<std::pair<std::string_view, std::string>> lines;
  lines.emplace_back("transport", kTransportNames[static_cast<std::size_t>(features.transport)]);
  lines.emplace_back("window", features.window_bytes == 0 ? "auto" : std::to_string(features.window_bytes));
  for (const Switch& s : kSwitches) lines.emplace_back(s.name, features.*s.value ? "true" : "false");
  lines.emplace_back("fec", print_fec(features.fec));
  lines.emplace_back("paths", kPathsNames[static_cast<std::size_t>(features.paths)]);
  const auto rows = features.modules.table().rows();
  for (std::size_t row = 0; row < rows.size(); ++row)
    lines.emplace_back(rows[row].name, features.modules.text(row));
  return lines;
}

Features without_idle_parts(Features features) {
  features.modules = without_idle_parts(features.modules);
  return features;
}

Features meet(const Features& asked, const Features& allowed) {
  Features both;
  // auto allows udp and tcp; tcp is always available; off forbids all: this is the order of the enumeration.
  both.transport = std::max(asked.transport, allowed.transport);
  both.window_bytes = asked.window_bytes == 0     ? allowed.window_bytes
                      : allowed.window_bytes == 0 ? asked.window_bytes
                                                  : std::min(asked.window_bytes, allowed.window_bytes);
  for (const Switch& s : kSwitches) both.*s.value = asked.*s.value && allowed.*s.value;
  both.modules = meet(asked.modules, allowed.modules);
  both.fec = meet(asked.fec, allowed.fec);
  both.paths = std::max(asked.paths, allowed.paths);
  return both;
}

}  // namespace longhaul::config
