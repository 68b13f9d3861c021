// SPDX-License-Identifier: Apache-2.0
// One line for each peer: fingerprint, bytes per second, nanoseconds. The first line names the format, the
// last one is a checksum of everything before it.
#include "proxy/link/udp/path_book.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace longhaul::link::udp {
namespace {

constexpr std::string_view kTitle = "longhaul paths 1\n";
constexpr std::size_t kSumBytes = 4 + 16 + 1;              // "sum ", hex digits, line break
constexpr std::uint64_t kMaxRate = 1'000'000'000'000 / 8;  // also the largest configurable one
constexpr Duration kMaxRtt = std::chrono::seconds(60);

std::string sum_line(std::string_view text) {
  char line[kSumBytes + 1];
  std::snprintf(line, sizeof line, "sum %016llx\n",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return line;
}

bool is_possible(const std::string& fingerprint, const PathMemory& memory) {
  const bool printable =
      std::all_of(fingerprint.begin(), fingerprint.end(), [](char c) { return c > ' ' && c < 127; });
  return printable && !fingerprint.empty() && memory.rate > 0 && memory.rate <= kMaxRate &&
         memory.min_rtt > Duration{0} && memory.min_rtt <= kMaxRtt;
}

// Up to the next `end`, which is taken, too.
std::optional<std::string_view> take(std::string_view& text, char end) {
  const auto size = text.find(end);
  if (size == std::string_view::npos) return std::nullopt;
  const auto taken = text.substr(0, size);
  text.remove_prefix(size + 1);
  return taken;
}

template <class Number>
std::optional<Number> number(std::string_view digits) {
  Number value{};
  const auto* end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || read != end) return std::nullopt;
  return value;
}

template <class Number>
bool close_to(Number a, Number b) {
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  return std::abs(x - y) <= 0.05 * std::max(x, y);
}

}  // namespace

std::optional<PathBook> PathBook::parse(std::string_view text) {
  if (text.size() > kMostBytes || text.size() < kTitle.size() + kSumBytes || !text.starts_with(kTitle))
    return std::nullopt;
  const auto summed = text.substr(0, text.size() - kSumBytes);
  if (text.substr(summed.size()) != sum_line(summed)) return std::nullopt;
  PathBook book;
  for (auto rest = summed.substr(kTitle.size()); !rest.empty();) {
    const auto fingerprint = take(rest, ' ');
    const auto rate = take(rest, ' ');
    const auto rtt = take(rest, '\n');
    if (!fingerprint || !rate || !rtt) return std::nullopt;
    const auto bytes = number<std::uint64_t>(*rate);
    const auto nanoseconds = number<std::int64_t>(*rtt);
    if (!bytes || !nanoseconds) return std::nullopt;
    const PathMemory memory{*bytes, std::chrono::nanoseconds(*nanoseconds)};
    const std::string name(*fingerprint);
    if (!is_possible(name, memory) || book.paths_.size() == kMostPaths ||
        !book.paths_.emplace(name, memory).second)
      return std::nullopt;
  }
  return book;
}

std::string PathBook::text() const {
  std::string text(kTitle);
  for (const auto& [fingerprint, memory] : paths_)
    text += fingerprint + ' ' + std::to_string(memory.rate) + ' ' +
            std::to_string(std::chrono::nanoseconds(memory.min_rtt).count()) + '\n';
  return text + sum_line(text);
}

std::optional<PathMemory> PathBook::find(const std::string& fingerprint) const {
  const auto found = paths_.find(fingerprint);
  if (found == paths_.end()) return std::nullopt;
  return found->second;
}

void PathBook::put(const std::string& fingerprint, const PathMemory& memory) {
  if (!is_possible(fingerprint, memory)) return;
  if (paths_.size() < kMostPaths || paths_.contains(fingerprint)) paths_[fingerprint] = memory;
}

bool PathBook::resembles(const PathBook& other) const {
  return std::equal(paths_.begin(), paths_.end(), other.paths_.begin(), other.paths_.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && close_to(a.second.rate, b.second.rate) &&
                             close_to(a.second.min_rtt.count(), b.second.min_rtt.count());
                    });
}

}  // namespace longhaul::link::udp
