// SPDX-License-Identifier: Apache-2.0
// Limits how many events of one kind a source has in the log in a minute; the next line of that kind says how many
// were left out. The caller counts the events, and writes the line.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace longhaul::log {

class AtMost {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kPeriod{1};
  static constexpr unsigned kLines = 50;         // of one source
  static constexpr std::size_t kSources = 1024;  // with so many in a period, others are not logged

  // Whether this event is logged, and how many before it were not since the last line.
  std::optional<std::uint64_t> may_write(std::string_view source, TimePoint now) {
    if (!began_ || now - *began_ >= kPeriod) {
      began_ = now;
      lines_.clear();
    }
    auto found = lines_.find(source);
    if (found == lines_.end() && lines_.size() < kSources) found = lines_.emplace(source, 0).first;
    if (found == lines_.end() || found->second == kLines) {
      ++left_out_;
      return std::nullopt;
    }
    ++found->second;
    return std::exchange(left_out_, 0);
  }

 private:
  std::optional<TimePoint> began_;
  std::map<std::string, unsigned, std::less<>> lines_;
  std::uint64_t left_out_ = 0;
};

}  // namespace longhaul::log
