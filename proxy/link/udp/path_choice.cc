// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_choice.h"

#include <algorithm>

namespace longhaul::link::udp {

void PathChoice::remember(std::span<const PathFacts> paths, TimePoint now) {
  past_.resize(std::max(past_.size(), paths.size()));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Past& past = past_[i];
    if (paths[i].late) past.late = now;
    if (past.worked == paths[i].works) continue;
    past.worked = paths[i].works;
    if (past.worked) {
      past.since = now;
    } else {
      const bool again = past.failed && now - *past.failed < kSteady;
      past.hold = again ? std::min(2 * past.hold, kMostHold) : kFirstHold;
      past.failed = now;
    }
  }
}

// Those that may be used: of the lowest cost, and not back too recently, unless there are no others.
std::vector<std::size_t> PathChoice::candidates(std::span<const PathFacts> paths, TimePoint now) {
  std::vector<std::size_t> usable, settled;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i].works || paths[i].late) continue;
    usable.push_back(i);
    TimePoint from = settles(past_[i]);
    if (past_[i].late) from = std::max(from, *past_[i].late + kFirstHold);
    if (now >= from)
      settled.push_back(i);
    else
      next_change_ = std::min(next_change_.value_or(from), from);
  }
  // Silence on all of them is a pause of this host, or of the peer: nothing is gained by a change.
  if (usable.empty())
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (paths[i].works && (i == preferred_ || !preferred_ || !paths[*preferred_].works))
        usable.push_back(i);
  std::vector<std::size_t> pool = settled.empty() ? usable : settled;
  if (pool.empty()) return pool;
  const auto cost = [&](std::size_t i) { return paths[i].cost; };
  const std::uint32_t least = paths[*std::ranges::min_element(pool, {}, cost)].cost;
  std::erase_if(pool, [&](std::size_t i) { return paths[i].cost > least; });
  return pool;
}

std::size_t PathChoice::fastest(std::span<const PathFacts> paths, const std::vector<std::size_t>& pool,
                                TimePoint now) {
  const std::size_t fastest =
      *std::ranges::min_element(pool, {}, [&](std::size_t i) { return paths[i].rtt; });
  if (!preferred_ || std::ranges::find(pool, *preferred_) == pool.end()) return fastest;
  if (paths[*preferred_].rtt <= paths[fastest].rtt * 5 / 4 + kClearlyFaster) {
    challenged_since_.reset();
    return *preferred_;
  }
  if (!challenged_since_) challenged_since_ = now;
  const TimePoint changes = *challenged_since_ + kFasterFor;
  if (now >= changes) return fastest;
  next_change_ = std::min(next_change_.value_or(changes), changes);
  return *preferred_;
}

PathShares PathChoice::choose(config::PathPolicy policy, std::span<const PathFacts> paths, TimePoint now) {
  remember(paths, now);
  next_change_.reset();
  PathShares shares;
  std::vector<std::size_t> pool = candidates(paths, now);
  if (pool.empty()) {
    preferred_.reset();
    challenged_since_.reset();
    return shares;
  }
  const bool in_order = policy == config::PathPolicy::failover;
  const std::size_t chosen =
      in_order ? *std::ranges::min_element(pool, {}, [&](std::size_t i) { return paths[i].order; })
               : fastest(paths, pool, now);
  if (chosen != preferred_) challenged_since_.reset();
  preferred_ = shares.preferred = chosen;
  const auto working = std::ranges::count_if(paths, [](const PathFacts& path) { return path.works; });
  shares.reason = working == 1       ? "no other path works"
                  : pool.size() == 1 ? "no other path of this cost is fit for use"
                  : in_order         ? "first in the configured order"
                                     : "lowest round-trip time";
  if (policy != config::PathPolicy::sum) return shares;
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (i != chosen && paths[i].works && !paths[i].late && paths[i].cost == paths[chosen].cost &&
        now >= settles(past_[i]))
      shares.helpers.push_back(i);
  return shares;
}

}  // namespace longhaul::link::udp
