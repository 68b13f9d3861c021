// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_choice.h"

#include <algorithm>
#include <utility>

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

// The paths that may be used: those of the lowest cost that have not recovered too recently, unless there are
// no others.
std::vector<std::size_t> PathChoice::candidates(std::span<const PathFacts> paths,
                                                std::optional<std::size_t> used, TimePoint now) {
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
  // Silence on all of them is a pause of this host, or of the peer: a change would not help.
  if (usable.empty())
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (paths[i].works && (i == used || !used || !paths[*used].works)) usable.push_back(i);
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
  if (!fastest_ || std::ranges::find(pool, *fastest_) == pool.end()) {
    challenged_since_.reset();
    return fastest;
  }
  if (paths[*fastest_].rtt <= paths[fastest].rtt * 5 / 4 + kClearlyFaster) {
    challenged_since_.reset();
    return *fastest_;
  }
  if (!challenged_since_) challenged_since_ = now;
  const TimePoint changes = *challenged_since_ + kFasterFor;
  if (now >= changes) {
    challenged_since_.reset();
    return fastest;
  }
  next_change_ = std::min(next_change_.value_or(changes), changes);
  return *fastest_;
}

std::vector<std::size_t> PathChoice::helpers_of(std::size_t chosen, std::span<const PathFacts> paths,
                                                TimePoint now) const {
  std::vector<std::size_t> helpers;
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (i != chosen && paths[i].works && !paths[i].late && paths[i].cost == paths[chosen].cost &&
        now >= settles(past_[i]))
      helpers.push_back(i);
  return helpers;
}

// The preferred path, unless it is doubtful itself. Another one may have any cost: it takes over if the doubt
// is justified.
std::optional<std::size_t> PathChoice::second_to(std::size_t preferred, std::span<const PathFacts> paths) {
  if (std::ranges::none_of(paths, &PathFacts::doubtful)) return std::nullopt;
  if (!paths[preferred].doubtful) return preferred;
  std::optional<std::size_t> second;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i].works || paths[i].late || paths[i].doubtful) continue;
    const auto order = [&](std::size_t path) { return std::pair(paths[path].cost, paths[path].rtt); };
    if (!second || order(i) < order(*second)) second = i;
  }
  return second;
}

PathShares PathChoice::choose(config::PathPolicy policy, Sharing sharing, std::span<const PathFacts> paths,
                              TimePoint now) {
  using config::PathPolicy;
  remember(paths, now);
  next_change_.reset();
  PathShares shares;
  const bool in_order = policy == PathPolicy::failover;
  const std::vector<std::size_t> pool = candidates(paths, fastest_, now);
  if (pool.empty()) {
    fastest_.reset();
    first_.reset();
    challenged_since_.reset();
    return shares;
  }
  fastest_ = shares.fastest = fastest(paths, pool, now);
  const std::vector<std::size_t> in_line = candidates(paths, first_, now);
  first_ = shares.first =
      *std::ranges::min_element(in_line, {}, [&](std::size_t i) { return paths[i].order; });
  shares.preferred = in_order ? first_ : fastest_;
  const auto working = std::ranges::count_if(paths, [](const PathFacts& path) { return path.works; });
  shares.reason = working == 1                              ? "no other path works"
                  : (in_order ? in_line : pool).size() == 1 ? "no other path of this cost is usable"
                  : in_order                                ? "first in the configured order"
                                                            : "lowest round-trip time";
  if (policy == PathPolicy::sum || sharing == Sharing::asked_for)
    shares.helpers = helpers_of(*fastest_, paths, now);
  shares.second = second_to(*shares.preferred, paths);
  shares.stranded = working == 1 && paths[*shares.preferred].doubtful;
  return shares;
}

}  // namespace longhaul::link::udp
