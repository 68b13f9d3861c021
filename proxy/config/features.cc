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

// Below 1 KiB a window holds less than one packet; above 1 GiB it exceeds what TCP itself can have in flight.
constexpr std::uint64_t kSmallestWindow = 1024, kLargestWindow = 1ull << 30;

constexpr std::array<std::string_view, 4> kTransportNames{"auto", "udp", "tcp", "off"};  // by Transport

struct Switch {
  std::string_view name;
  bool Features::*value;
  bool Features::*whole = nullptr;  // the feature that this is a part of, in an earlier row
};
// In the order of the documentation, on both sides of `fec`.
constexpr std::array kSwitchesBeforeFec{
    Switch{"fast_connect", &Features::fast_connect}, Switch{"compression", &Features::compression},
    Switch{"dedup_memory", &Features::dedup_memory}, Switch{"dedup_disk", &Features::dedup_disk}};
constexpr std::array kSwitchesAfterFec{
    Switch{"smb", &Features::smb},
    Switch{"smb.read_ahead", &Features::smb_read_ahead, &Features::smb},
    Switch{"smb.write_behind", &Features::smb_write_behind, &Features::smb},
    Switch{"smb.write_behind_cached", &Features::smb_write_behind_cached, &Features::smb_write_behind},
    Switch{"smb.metadata", &Features::smb_metadata, &Features::smb},
    Switch{"http", &Features::http},
    Switch{"mapi", &Features::mapi},
    Switch{"nfs", &Features::nfs},
    Switch{"dns", &Features::dns}};
constexpr std::array<std::string_view, 17> kNames{
    "preset",       "transport",      "window",           "fast_connect",            "compression",
    "dedup_memory", "dedup_disk",     "fec",              "smb",                     "smb.read_ahead",
    "smb.write_behind", "smb.write_behind_cached", "smb.metadata", "http", "mapi", "nfs", "dns"};

template <class Visit>
void for_each_switch(Visit visit) {
  for (const Switch& s : kSwitchesBeforeFec) visit(s);
  for (const Switch& s : kSwitchesAfterFec) visit(s);
}

Features all_off() {
  Features none;
  for_each_switch([&](const Switch& s) { none.*s.value = false; });
  none.transport = Transport::off;
  none.fec = {.mode = Fec::Mode::off};
  return none;
}

Features transport_only(Transport transport, Fec::Mode fec) {
  Features features = all_off();
  features.transport = transport;
  features.fast_connect = true;
  features.fec.mode = fec;
  return features;
}

Features reduction() {
  Features features = transport_only(Transport::automatic, Fec::Mode::off);
  features.compression = features.dedup_memory = features.dedup_disk = true;
  return features;
}

Features with_modules(Features features, Fec::Mode fec) {
  for (const Switch& s : kSwitchesAfterFec)
    features.*s.value = s.value != &Features::smb_write_behind_cached;
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

// smb.metadata: a switch with a third value.
constexpr std::string_view kMetadata = "smb.metadata", kStrict = "strict", kRelaxed = "relaxed";

std::string_view print_metadata(const Features& features) {
  return !features.smb_metadata ? "false" : features.smb_metadata_relaxed ? kRelaxed : kStrict;
}

FeatureError wrong_value(std::string_view name, std::string_view value, std::string_view accepted) {
  return {std::string(name) + " cannot be \"" + std::string(value) + "\"; it must be " + std::string(accepted) +
          "."};
}

// The one that sends fewer repairs. A total order (off, then by M/K, then by K, then adaptive), so that any
// number of settings combine to the same value in any order.
Fec meet(const Fec& a, const Fec& b) {
  if (a.mode == Fec::Mode::off || b.mode == Fec::Mode::adaptive) return a;
  if (b.mode == Fec::Mode::off || a.mode == Fec::Mode::adaptive) return b;
  const int a_overhead = a.repair_packets * b.source_packets,
            b_overhead = b.repair_packets * a.source_packets;
  if (a_overhead != b_overhead) return a_overhead < b_overhead ? a : b;
  return a.source_packets <= b.source_packets ? a : b;
}

}  // namespace

std::span<const std::string_view> feature_names() { return kNames; }

std::optional<Features> preset(std::string_view letters) {
  if (letters == "B") return all_off();
  if (letters == "T") return reduction();
  if (letters == "A") return with_modules(reduction(), Fec::Mode::off);
  if (letters == "F") return transport_only(Transport::udp, Fec::Mode::adaptive);
  if (letters == "A+F") return with_modules(reduction(), Fec::Mode::adaptive);
  return std::nullopt;
}

TextResult<void> set_feature(Features& features, std::string_view name, std::string_view value) {
  if (name == "preset") {
    const auto chosen = preset(value);
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
  if (name == kMetadata) {
    const bool relaxed = value == kRelaxed;
    const auto on = relaxed || value == kStrict ? std::optional(true) : parse_switch(value);
    if (!on) return wrong_value(name, value, "strict, relaxed or false");
    features.smb_metadata = *on;
    features.smb_metadata_relaxed = relaxed;
    return {};
  }
  bool Features::*field = nullptr;
  for_each_switch([&](const Switch& s) {
    if (s.name == name) field = s.value;
  });
  if (field == nullptr)
    return FeatureError{"Unknown feature \"" + std::string(name) + "\"." + did_you_mean(name, kNames)};
  const auto on = parse_switch(value);
  if (!on) return wrong_value(name, value, "true or false");
  features.*field = *on;
  return {};
}

std::vector<std::pair<std::string_view, std::string>> to_text(const Features& features) {
  std::vector<std::pair<std::string_view, std::string>> lines;
  const auto add = [&](const Switch& s) { lines.emplace_back(s.name, features.*s.value ? "true" : "false"); };
  lines.emplace_back("transport", kTransportNames[static_cast<std::size_t>(features.transport)]);
  lines.emplace_back("window", features.window_bytes == 0 ? "auto" : std::to_string(features.window_bytes));
  for (const Switch& s : kSwitchesBeforeFec) add(s);
  lines.emplace_back("fec", print_fec(features.fec));
  for (const Switch& s : kSwitchesAfterFec) {
    if (s.name == kMetadata) {
      lines.emplace_back(s.name, print_metadata(features));
    } else {
      add(s);
    }
  }
  return lines;
}

Features without_idle_parts(Features features) {
  for_each_switch([&](const Switch& s) {
    if (s.whole != nullptr && !(features.*s.whole)) features.*s.value = false;
  });
  return features;
}

Features meet(const Features& asked, const Features& allowed) {
  Features both;
  // auto allows udp and tcp; tcp is always available; off ends it: the order of the enumeration.
  both.transport = std::max(asked.transport, allowed.transport);
  both.window_bytes = asked.window_bytes == 0     ? allowed.window_bytes
                      : allowed.window_bytes == 0 ? asked.window_bytes
                                                  : std::min(asked.window_bytes, allowed.window_bytes);
  for_each_switch([&](const Switch& s) { both.*s.value = asked.*s.value && allowed.*s.value; });
  both.smb_metadata_relaxed = asked.smb_metadata_relaxed && allowed.smb_metadata_relaxed;
  both.fec = meet(asked.fec, allowed.fec);
  return both;
}

}  // namespace longhaul::config
