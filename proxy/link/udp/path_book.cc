// SPDX-License-Identifier: Apache-2.0
// One row for each line to a peer: fingerprint, bytes per second, nanoseconds, when it was measured in
// seconds since 1970, the line's name. The first row names the format, the last one is a checksum of
// everything before it.
#include "proxy/link/udp/path_book.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kTitle = "longhaul paths 2\n";
constexpr std::size_t kSumBytes = 4 + 16 + 1;              // "sum ", hex digits, line break
constexpr std::uint64_t kMaxRate = 1'000'000'000'000 / 8;  // also the largest configurable one
constexpr Duration kMaxRtt = std::chrono::seconds(60);
constexpr std::size_t kMaxPeerBytes = 128, kMaxLineBytes = 64;
// The share of a remembered rate at which a new start begins. At smaller shares, a start without memory is
// faster.
constexpr double kRecentTrust = 0.9, kOldTrust = 0.75;
// The bytes that StartRamp sends in a round trip after its first train: the loss if the line has become much
// slower. On shorter round trips, acknowledgements arrive soon anyway.
constexpr double kMostInFirstRoundTrip = 32 * 32 * 1500;
constexpr Duration kShortestRoundTrip = 10ms;
// Rates are written again if their dates differ by this much.
constexpr auto kSameTime = 10min;

std::string sum_line(std::string_view text) {
  char line[kSumBytes + 1];
  std::snprintf(line, sizeof line, "sum %016llx\n",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return line;
}

bool is_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

bool is_possible(const PathBook::Path& path, const PathMemory& memory, PathBook::Time measured) {
  return is_word(path.peer) && !path.peer.empty() && path.peer.size() <= kMaxPeerBytes &&
         is_word(path.line) && path.line.size() <= kMaxLineBytes && memory.rate > 0 &&
         memory.rate <= kMaxRate && memory.min_rtt > Duration{0} && memory.min_rtt <= kMaxRtt &&
         measured.time_since_epoch() >= 0s;
}

bool is_same(const PathMemory& a, const PathMemory& b) { return a.rate == b.rate && a.min_rtt == b.min_rtt; }

// Takes everything up to the next `end`, and `end` itself.
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
    const auto rtt = take(rest, ' ');
    const auto date = take(rest, ' ');
    const auto line = take(rest, '\n');
    if (!fingerprint || !rate || !rtt || !date || !line) return std::nullopt;
    const auto bytes = number<std::uint64_t>(*rate);
    const auto nanoseconds = number<std::int64_t>(*rtt);
    const auto since_1970 = number<std::int64_t>(*date);
    if (!bytes || !nanoseconds || !since_1970) return std::nullopt;
    const PathMemory memory{*bytes, std::chrono::nanoseconds(*nanoseconds)};
    const Time measured{std::chrono::seconds(*since_1970)};
    const Path path{std::string(*fingerprint), std::string(*line)};
    if (!is_possible(path, memory, measured) || book.paths_.size() == kMostPaths ||
        !book.paths_.emplace(path, Entry{memory, measured}).second)
      return std::nullopt;
  }
  return book;
}

std::string PathBook::text() const {
  std::string text(kTitle);
  for (const auto& [path, entry] : paths_)
    text += path.peer + ' ' + std::to_string(entry.memory.rate) + ' ' +
            std::to_string(std::chrono::nanoseconds(entry.memory.min_rtt).count()) + ' ' +
            std::to_string(entry.measured.time_since_epoch().count()) + ' ' + path.line + '\n';
  return text + sum_line(text);
}

std::optional<PathMemory> PathBook::find(const Path& path) const {
  const auto found = paths_.find(path);
  if (found == paths_.end()) return std::nullopt;
  return found->second.memory;
}

std::optional<PathMemory> PathBook::recall(const Path& path, Time now) const {
  const auto found = paths_.find(path);
  if (found == paths_.end()) return std::nullopt;
  const auto& [memory, measured] = found->second;
  if (measured > now || now - measured > kOldest) return std::nullopt;
  PathMemory recalled = memory;
  const double most = kMostInFirstRoundTrip / seconds(std::max(memory.min_rtt, kShortestRoundTrip));
  recalled.trust =
      std::min(now - measured <= kRecent ? kRecentTrust : kOldTrust, most / static_cast<double>(memory.rate));
  return recalled;
}

void PathBook::put(const Path& path, const PathMemory& memory, Time measured) {
  if (!is_possible(path, memory, measured)) return;
  if (paths_.size() < kMostPaths || paths_.contains(path))
    paths_.insert_or_assign(path, Entry{memory, measured});
}

void PathBook::date(const PathBook& before, Time now) {
  for (auto& [path, entry] : paths_) {
    const auto old = before.paths_.find(path);
    const bool is_old = old != before.paths_.end() && is_same(old->second.memory, entry.memory);
    entry.measured = is_old ? old->second.measured : std::max(now, Time{});
  }
}

bool PathBook::resembles(const PathBook& other) const {
  return std::equal(paths_.begin(), paths_.end(), other.paths_.begin(), other.paths_.end(),
                    [](const auto& a, const auto& b) {
                      const auto &x = a.second, &y = b.second;
                      return a.first == b.first && close_to(x.memory.rate, y.memory.rate) &&
                             close_to(x.memory.min_rtt.count(), y.memory.min_rtt.count()) &&
                             std::chrono::abs(x.measured - y.measured) < kSameTime;
                    });
}

}  // namespace longhaul::link::udp
