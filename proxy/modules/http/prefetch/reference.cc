// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/reference.h"

#include <algorithm>
#include <array>
#include <vector>

#include "proxy/modules/http/head.h"

namespace longhaul::http {
namespace {

constexpr std::string_view kOddCharacters = "\\\"<>^`{|}";

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < '\x7f' && kOddCharacters.find(c) == std::string_view::npos;
  });
}

bool has_scheme(std::string_view reference) {
  const std::size_t colon = reference.find(':');
  return colon != std::string_view::npos && colon < reference.find_first_of("/?");
}

// RFC 3986, section 5.2.4, for a path that begins with a slash.
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  bool is_folder = false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    is_folder = segment == "." || segment == "..";
    if (segment == ".." && !kept.empty()) kept.pop_back();
    if (!is_folder) kept.push_back(segment);
  }
  std::string result;
  for (const std::string_view segment : kept) (result += '/') += segment;
  if (is_folder || result.empty()) result += '/';
  return result;
}

}  // namespace

std::optional<std::string> resolve(const Origin& origin, std::string_view base_target, std::string_view reference) {
  constexpr std::string_view kSpace = " \t\r\n\f";
  const std::size_t first = reference.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return std::nullopt;
  reference = reference.substr(first, reference.find_last_not_of(kSpace) - first + 1);
  reference = reference.substr(0, reference.find('#'));
  if (reference.empty() || reference.size() > kMostTargetBytes || !is_plain(reference)) return std::nullopt;

  if (has_scheme(reference)) {
    if (!same_name(reference.substr(0, origin.scheme.size()), origin.scheme)) return std::nullopt;
    reference.remove_prefix(origin.scheme.size() - 2);
  }
  if (reference.starts_with("//")) {
    reference.remove_prefix(2);
    const std::size_t end = std::min(reference.find_first_of("/?"), reference.size());
    if (!same_name(reference.substr(0, end), origin.authority)) return std::nullopt;
    reference.remove_prefix(end);
  } else if (!reference.starts_with('/')) {
    const std::string_view base_path = base_target.substr(0, base_target.find('?'));
    if (!base_path.starts_with('/')) return std::nullopt;
    const std::string_view kept = reference.starts_with('?') ? base_path : base_path.substr(0, base_path.rfind('/') + 1);
    return resolve(origin, "/", std::string(kept) + std::string(reference));
  }
  const std::size_t query = std::min(reference.find('?'), reference.size());
  const std::string_view path = query == 0 ? "/" : reference.substr(0, query);
  // Browsers treat %2e as a dot in some places.
  if (lower(path).find("%2e") != std::string::npos) return std::nullopt;
  std::string target = without_dots(path) + std::string(reference.substr(query));
  if (target.starts_with("//") || target.size() > kMostTargetBytes || looks_like_action(target)) return std::nullopt;
  return target;
}

bool looks_like_action(std::string_view target) {
  static constexpr std::array<std::string_view, 8> kActions{"logout", "logoff", "signout", "sign-out", "sign_out", "delete",
                                                            "unsubscribe", "destroy"};
  const std::string text = lower(target);
  return std::ranges::any_of(kActions, [&](std::string_view each) { return text.find(each) != std::string::npos; });
}

}  // namespace longhaul::http
