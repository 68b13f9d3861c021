// SPDX-License-Identifier: Apache-2.0
// Bytes and flows over time, in three rings: seconds of the last ten minutes, minutes of a day, hours of
// thirty days. Pure: the caller supplies the time of day and stores the file.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flows/flow_table.h"

namespace longhaul::control {

class History {
 public:
  struct Slot {
    flows::FlowBytes bytes;        // transferred in this interval
    std::uint64_t most_flows = 0;  // largest number of live flows
    std::uint64_t samples = 0;     // 0 if no daemon was running
    bool operator==(const Slot&) const = default;
  };

  class Series {
   public:
    Series(std::chrono::seconds step, std::size_t kept) : step_(step), slots_(kept) {}

    std::chrono::seconds step() const { return step_; }
    std::size_t kept() const { return slots_.size(); }
    // The number of the newest slot; a slot begins at its number times `step`, in Unix time.
    std::uint64_t newest() const { return newest_; }
    // From newest() - kept() + 1 to newest().
    const Slot& at(std::uint64_t number) const { return slots_[number % slots_.size()]; }

    void add(std::uint64_t unix_seconds, const Slot& sample);

   private:
    friend class History;
    void move_to(std::uint64_t number);

    std::chrono::seconds step_;
    std::vector<Slot> slots_;
    std::uint64_t newest_ = 0;
  };

  History();

  // If the clock was set back, intervals in its future are forgotten.
  void add(std::uint64_t unix_seconds, const Slot& sample);
  const std::array<Series, 3>& series() const { return series_; }
  const Series* find(std::chrono::seconds step) const;  // null if none has that step

  // The content of a file, with a checksum.
  static constexpr std::size_t kMostBytes = 256 * 1024;
  std::string text() const;
  static std::optional<History> parse(std::string_view text);

 private:
  std::array<Series, 3> series_;
};

}  // namespace longhaul::control
