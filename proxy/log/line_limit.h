// SPDX-License-Identifier: Apache-2.0
// Limits how many log lines a source may cause per minute, so that it cannot flood the log. Counts the
// omitted events, for the next line; the caller writes the lines.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace longhaul::log {

class LineLimit {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kPeriod{1};
  static constexpr std::size_t kSources = 1024;  // with this number in a period, other sources are not logged

  // `lines`: per source and period.
  explicit LineLimit(unsigned lines) : most_(lines) {}

  // Returns nullopt if this event must not be logged, otherwise the number of events omitted since the last
  // line.
  std::optional<std::uint64_t> may_write(std::string_view source, TimePoint now) {
    if (!began_ || now - *began_ >= kPeriod) {
      began_ = now;
      lines_.clear();
    }
    auto found = lines_.find(source);
    if (found == lines_.end() && lines_.size() < kSources) found = lines_.emplace(source, 0).first;
    if (found == lines_.end() || found->second == most_) {
      ++left_out_;
      return std::nullopt;
    }
    ++found->second;
    return std::exchange(left_out_, 0);
  }

 private:
  unsigned most_;
  std::optional<TimePoint> began_;
  std::map<std::string, unsigned, std::less<>> lines_;
  std::uint64_t left_out_ = 0;
};

}  // namespace longhaul::log
