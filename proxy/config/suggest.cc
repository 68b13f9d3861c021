// SPDX-License-Identifier: Apache-2.0
// Edit distance over a few short words; not optimised, because it runs only once, before the program ends.
#include "proxy/config/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace longhaul::config {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '-' ? '_' : c; }

// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongestWord = 64;  // a longer word is not a typing mistake, and would take too long
  if (word.size() > kLongestWord) return {};
  std::string_view best;
  std::size_t best_distance = 0;
  for (std::string_view candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (best.empty() || d < best_distance) best = candidate, best_distance = d;
  }
  const std::size_t allowed = std::max<std::size_t>(1, std::max(word.size(), best.size()) / 3);
  return best_distance <= allowed ? best : std::string_view{};
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known,
                         std::string_view otherwise) {
  if (const std::string_view near = nearest(word, known); !near.empty())
    return " Did you mean " + std::string(near) + "?";
  std::string list = " Known names: ";
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) list += i + 1 == known.size() ? " and " : ", ";
    list += known[i];
  }
  return list + "." + std::string(otherwise);
}

}  // namespace longhaul::config
