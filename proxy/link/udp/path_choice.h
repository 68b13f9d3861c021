// SPDX-License-Identifier: Apache-2.0
// Chooses which of several lines to a peer carries what: facts and time in, a choice with its reason out. It
// does not return at once to a path that failed, nor change for a small difference. path_sharing.h acts on
// it.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "proxy/config/path_policy.h"
#include "proxy/link/types.h"

namespace longhaul::link::udp {

struct PathFacts {
  bool works = false;  // packets are acknowledged
  bool late = false;   // an acknowledgement is overdue
  bool doubtful = false;  // an acknowledgement may soon be overdue
  std::uint32_t cost = 1;
  std::size_t order = 0;  // position in the configuration
  Duration rtt{};         // smoothed, including the queue
};

struct PathShares {
  std::optional<std::size_t> preferred;  // carries everything that others do not; nullopt if no path works
  // For streams that request a policy: the path with the lowest round-trip time (`sum`, `best`), and the
  // first one in configuration order (`failover`). One of them is the preferred one.
  std::optional<std::size_t> fastest, first;
  std::vector<std::size_t> helpers;  // take bytes of bulk streams of the policy `sum`
  // Receives copies from the paths that are doubtful.
  std::optional<std::size_t> second;
  // The preferred path is doubtful, and no other works: one that has recovered unnoticed is worth a probe.
  bool stranded = false;
  const char* reason = "";  // why the preferred path is preferred, for logs and status
};

// Whether streams request `sum` although it is not the peer's policy: only then helpers are chosen for them.
enum class Sharing : std::uint8_t { as_policy, asked_for };

class PathChoice {
 public:
  // A path keeps its index in `paths` for the life of this object; new ones are appended.
  PathShares choose(config::PathPolicy policy, Sharing sharing, std::span<const PathFacts> paths,
                    TimePoint now);
  // The next time at which a path may be used that has to wait; the choice may change then.
  std::optional<TimePoint> next_change() const { return next_change_; }

  // Time until a path that works again, or is no longer late, may replace one that works.
  static constexpr Duration kFirstHold = std::chrono::seconds(1), kMostHold = std::chrono::seconds(16);
  // A failure within this time after the previous one doubles that time.
  static constexpr Duration kSteady = std::chrono::minutes(1);
  // A path with a lower round-trip time replaces the preferred one if the difference is larger than this and
  // a quarter of the lower one, for this long.
  static constexpr Duration kClearlyFaster = std::chrono::milliseconds(5);
  static constexpr Duration kFasterFor = std::chrono::seconds(1);

 private:
  struct Past {
    bool worked = false;
    TimePoint since{};  // works since then
    Duration hold{0};
    std::optional<TimePoint> late;  // when it was last late
    std::optional<TimePoint> failed;
  };

  // When the path may help, considering its failures.
  static TimePoint settles(const Past& past) { return past.since + past.hold; }
  void remember(std::span<const PathFacts> paths, TimePoint now);
  // `used`: the previous choice.
  std::vector<std::size_t> candidates(std::span<const PathFacts> paths, std::optional<std::size_t> used,
                                      TimePoint now);
  std::size_t fastest(std::span<const PathFacts> paths, const std::vector<std::size_t>& pool, TimePoint now);
  std::vector<std::size_t> helpers_of(std::size_t chosen, std::span<const PathFacts> paths,
                                      TimePoint now) const;
  static std::optional<std::size_t> second_to(std::size_t preferred, std::span<const PathFacts> paths);

  std::vector<Past> past_;
  std::optional<std::size_t> fastest_, first_;
  std::optional<TimePoint> challenged_since_;
  std::optional<TimePoint> next_change_;
};

}  // namespace longhaul::link::udp
