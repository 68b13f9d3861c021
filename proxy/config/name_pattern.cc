// SPDX-License-Identifier: Apache-2.0
// Compares names label by label from the end; an international name must be in its ASCII form.
#include "proxy/config/name_pattern.h"

#include <algorithm>

#include "proxy/config/network.h"

namespace longhaul::config {
namespace {

constexpr std::size_t kMostNameBytes = 253;
constexpr std::size_t kMostLabelBytes = 63;

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_names(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return small(x) == small(y); });
}

bool is_label_character(char c) {
  c = small(c);
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool is_host_name(std::string_view name) {
  if (name.empty() || name.size() > kMostNameBytes || parse_address(name)) return false;
  std::size_t label = 0;
  for (const char c : name) {
    if (c == '.' ? label == 0 : !is_label_character(c) || label == kMostLabelBytes) return false;
    label = c == '.' ? 0 : label + 1;
  }
  return label > 0;
}

std::string_view without_final_dot(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

}  // namespace

std::optional<NamePattern> parse_name_pattern(std::string_view text) {
  NamePattern pattern{.subdomains = text.starts_with('*')};
  if (text == "*") return pattern;
  if (text.starts_with("*.")) text.remove_prefix(2);
  text = without_final_dot(text);
  if (!is_host_name(text)) return std::nullopt;
  pattern.name.resize(text.size());
  std::transform(text.begin(), text.end(), pattern.name.begin(), small);
  return pattern;
}

std::string NamePattern::to_text() const {
  if (!subdomains) return name;
  return name.empty() ? "*" : "*." + name;
}

bool matches(const NamePattern& pattern, std::string_view host) {
  host = without_final_dot(host);
  if (!pattern.subdomains) return equal_names(pattern.name, host);
  if (pattern.name.empty()) return true;
  if (host.size() < pattern.name.size() + 2) return false;  // at least a label of one character and a dot
  const std::size_t at = host.size() - pattern.name.size();
  return host[at - 1] == '.' && equal_names(pattern.name, host.substr(at));
}

}  // namespace longhaul::config
