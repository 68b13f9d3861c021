// SPDX-License-Identifier: Apache-2.0
// Attributes of HTML and members of manifests that list words, with spaces between them (`rel`, `sizes`,
// `purpose`).
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

namespace longhaul::http {

inline std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> found;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (end > 0) found.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return found;
}

inline bool has_word(std::string_view list, std::string_view word) {
  const auto words = words_of(list);
  return std::ranges::find(words, word) != words.end();
}

}  // namespace longhaul::http
