// SPDX-License-Identifier: Apache-2.0
// The accepted values of each kind, and the sentence for any other.
#include "proxy/config/values.h"

#include <algorithm>
#include <array>

#include "proxy/config/units.h"

namespace longhaul::config {
namespace {

constexpr std::uint64_t kMostRateBits = 1'000'000'000'000;  // a terabit; more is a mistake in the unit
constexpr std::uint64_t kLeastRateBits = 8'000;             // below, one packet takes more than a second

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

namespace {

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

constexpr std::string_view kNameRule = "must be 1 to 63 letters, digits, dots, dashes or underscores.";

}  // namespace

std::string name_value(const Section& section, std::string_view key, std::string_view example) {
  const Text typed = section.required_text(key, example);
  if (!is_name(typed.value)) section.fail(typed.line, key, kNameRule);
  return typed.value;
}

std::vector<std::string> group_names(const Section& section, std::string_view key, std::string_view example) {
  std::vector<std::string> list;
  for (const Text& typed : section.texts(key, example)) {
    if (!is_name(typed.value))
      section.fail(typed.line, key, "= \"" + typed.value + "\" " + std::string(kNameRule));
    if (std::find(list.begin(), list.end(), typed.value) != list.end())
      section.fail(typed.line, key, "names \"" + typed.value + "\" twice.");
    list.push_back(typed.value);
  }
  return list;
}

HostPort host_port(const Section& section, std::string_view key, const Text& typed, HostKind kind) {
  const auto parsed = parse_host_port(typed.value, kind);
  if (!parsed) section.fail(typed.line, key, "= \"" + typed.value + "\" " + parsed.error().message + ".");
  return *parsed;
}

std::vector<Network> networks(const Section& section, std::string_view key) {
  std::vector<Network> list;
  for (const Text& typed : section.texts(key, "10.10.2.0/24")) {
    const auto network = parse_network(typed.value);
    if (!network) {
      const auto meant = parse_network_loosely(typed.value);
      section.fail(
          typed.line, key,
          meant ? "has \"" + typed.value + "\", which has bits after its prefix. Did you mean \"" +
                      to_text(*meant) + "\"?"
                : "has \"" + typed.value +
                      "\", which is not a network; write for example \"10.10.2.0/24\" or \"fd00:2::/64\".");
    }
    if (std::find(list.begin(), list.end(), *network) != list.end())
      section.fail(typed.line, key, "names \"" + typed.value + "\" twice.");
    list.push_back(*network);
  }
  return list;
}

std::vector<NamePattern> name_patterns(const Section& section, std::string_view key) {
  std::vector<NamePattern> list;
  for (const Text& typed : section.texts(key, "*.corp.example")) {
    auto pattern = parse_name_pattern(typed.value);
    if (!pattern)
      section.fail(typed.line, key,
                   "has \"" + typed.value +
                       "\", which is not a host name; write for example \"files.corp.example\", "
                       "\"*.corp.example\" for all names below it, or \"*\" for every name.");
    if (std::find(list.begin(), list.end(), *pattern) != list.end())
      section.fail(typed.line, key, "names \"" + typed.value + "\" twice.");
    list.push_back(*std::move(pattern));
  }
  return list;
}

std::uint64_t rate(const Section& section, std::string_view key) {
  const auto typed = section.text(key, "51.84mbit");
  if (!typed) return 0;
  const auto bits = parse_rate(typed->value);
  if (!bits || *bits < kLeastRateBits || *bits > kMostRateBits)
    section.fail(typed->line, key,
                 "cannot be \"" + typed->value +
                     "\"; it must be a number with the unit bit, kbit, mbit or gbit (per second), such as "
                     "\"51.84mbit\", from "
                     "8kbit to 1000gbit.");
  return *bits;
}

namespace {

// The number of digits, if nothing else is wrong: then part of the value was cut off, or copied twice.
std::string digits_found(std::string_view value) {
  if (!value.starts_with("sha256:")) return {};
  value.remove_prefix(7);
  if (value.size() == 64 || value.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  return ", not " + std::to_string(value.size());
}

std::string fingerprint(const Section& section, const Text& typed) {
  constexpr std::string_view kPrefix = "sha256:";
  std::string value = typed.value;
  std::transform(value.begin(), value.end(), value.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const bool good = value.size() == kPrefix.size() + 64 && value.starts_with(kPrefix) &&
                    std::all_of(value.begin() + kPrefix.size(), value.end(),
                                [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!good)
    section.fail(typed.line, "fingerprint",
                 "must be \"sha256:\" and 64 hexadecimal digits" + digits_found(value) +
                     "; copy the line that `longhaul keygen` printed on the peer.");
  return value;
}

}  // namespace

std::vector<Text> fingerprints(const Section& section) {
  std::vector<Text> list = section.required_texts("fingerprint", "sha256:…");
  if (list.size() > Peer::kMostFingerprints)
    section.fail(list.front().line, "fingerprint",
                 "names " + std::to_string(list.size()) + " keys; a peer may have " +
                     std::to_string(Peer::kMostFingerprints) + ".");
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].value = fingerprint(section, list[i]);
    for (std::size_t before = 0; before < i; ++before)
      if (list[before].value == list[i].value)
        section.fail(list[i].line, "fingerprint", "names the same key twice.");
  }
  return list;
}

std::optional<std::string> kernel_name(const Section& section, std::string_view key,
                                       std::string_view example) {
  auto typed = section.text(key, example);
  if (!typed) return std::nullopt;
  // The kernel's TCP_CA_NAME_MAX is 16, including the final zero.
  const bool good = typed->value.size() < 16 &&
                    std::all_of(typed->value.begin(), typed->value.end(),
                                [](char c) { return is_lower_or_digit(c) || c == '_' || c == '-'; });
  if (!good)
    section.fail(typed->line, key,
                 "cannot be \"" + typed->value +
                     "\"; it must be a name that the kernel knows, such as \"bbr\" or \"cubic\".");
  return std::move(typed->value);
}

bool is_interface_name(std::string_view name) {
  // The kernel's IFNAMSIZ is 16, including the final zero.
  return !name.empty() && name.size() < 16 && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '/' && c != ':' && c != '"'; });
}

std::vector<std::string> interfaces(const Section& section, std::string_view key) {
  std::vector<std::string> list;
  for (const Text& typed : section.texts(key, "lan0")) {
    const std::string& name = typed.value;
    if (!is_interface_name(name)) section.fail(typed.line, key, "contains an invalid interface name.");
    if (std::find(list.begin(), list.end(), name) != list.end())
      section.fail(typed.line, key, "names \"" + name + "\" twice.");
    list.push_back(name);
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> features_in(const Section& section,
                                                             const FeatureTable& modules) {
  std::vector<std::pair<std::string, std::string>> list;
  Features scratch = standard_features(modules);
  const auto names = feature_names(modules);
  for (std::string_view feature : names) {
    if (section.is_group(feature, names)) continue;
    const auto value = section.scalar(feature);
    if (!value) continue;
    if (const auto accepted = set_feature(scratch, feature, value->value); !accepted)
      section.fail(value->line, "", accepted.error().message);
    list.emplace_back(feature, value->value);
  }
  return list;
}

std::string meant_instead(const std::string& typed_size) {
  const std::string meant = meant_size(typed_size);
  return meant.empty() ? "" : " Did you mean \"" + meant + "\"?";
}

std::optional<std::uint64_t> size_or_none(const Section& section, std::string_view key, std::uint64_t least,
                                          std::uint64_t most) {
  const auto typed = section.scalar(key);
  if (!typed) return std::nullopt;
  const auto bytes = parse_size(typed->value);
  if (bytes && (*bytes == 0 || (*bytes >= least && *bytes <= most))) return bytes;
  section.fail(typed->line, key,
               "cannot be \"" + typed->value + "\"; it must be 0 (none) or a size from \"" +
                   size_to_text(least) + "\" to \"" + size_to_text(most) + "\"." +
                   meant_instead(typed->value));
}

}  // namespace longhaul::config
