// SPDX-License-Identifier: Apache-2.0
// Measurements of the lines to peers as text, for the next start of the daemon. It is accepted as a whole or
// not at all. proxy/path_keeper.h handles the file and reads the clock.
#pragma once
#include <chrono>
#include <compare>
#include <map>
#include <string>
#include <string_view>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class PathBook {
 public:
  // Far more than daemons have peers and lines; bounds what is read.
  static constexpr std::size_t kMostPaths = 4096;
  static constexpr std::size_t kMostBytes = 1 << 20;

  using Time = std::chrono::sys_seconds;

  struct Path {
    std::string peer;  // its fingerprint, as the configuration has it
    std::string line;  // the name of its [[peer.path]]; empty: the only line
    auto operator<=>(const Path&) const = default;
  };

  // Returns nullopt for any text that text() did not produce: truncated, damaged or edited.
  static std::optional<PathBook> parse(std::string_view text);
  std::string text() const;

  std::optional<PathMemory> find(const Path& path) const;
  // The measurement for a start at `now`. The older it is, the lower its `trust`. Returns nullopt if it is
  // too old, or its date is in the future. At rate * trust, the first round trip has at most 1,024 packets.
  std::optional<PathMemory> recall(const Path& path, Time now) const;
  // Impossible values are omitted.
  void put(const Path& path, const PathMemory& memory, Time measured = {});
  // Sets the dates: a measurement that `before` contains unchanged keeps its date, all others get `now`.
  void date(const PathBook& before, Time now);

  bool empty() const { return paths_.empty(); }
  // The same paths, and no difference that a transfer, or the next start, would notice.
  bool resembles(const PathBook& other) const;

  // A line whose rate was measured so long ago may be another one, and a start without memory loses nothing.
  static constexpr auto kRecent = std::chrono::hours(1), kOldest = std::chrono::hours(24);

 private:
  struct Entry {
    PathMemory memory;
    Time measured;
  };
  std::map<Path, Entry> paths_;
};

}  // namespace longhaul::link::udp
