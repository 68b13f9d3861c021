// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_sharing.h"

#include <algorithm>
#include <utility>

namespace longhaul::link::udp {
namespace {

using State = UdpCarrier::State;

// The end of a transfer is left to the preferred path, even if the other one is as fast: there is nothing to
// gain, and two paths reorder it.
constexpr double kLeastBacklog = 32 * 1024, kMostBacklog = 1 << 20;

bool works(const PathSharing::Path& path) { return path.carrier && path.carrier->state() == State::up; }

// What the preferred carrier sends in the time by which the helper's packets arrive later than its own.
std::size_t backlog_for(const UdpCarrier& helper, const UdpCarrier& preferred) {
  const Duration later = (helper.rtt().smoothed() - preferred.rtt().smoothed()) / 2;
  const double bytes = std::chrono::duration<double>(std::max<Duration>(later, Duration{0})).count() *
                       static_cast<double>(preferred.rate().bytes_per_second());
  return static_cast<std::size_t>(std::clamp(bytes, kLeastBacklog, kMostBacklog));
}

}  // namespace

PathShares PathSharing::choose(config::PathPolicy policy, std::span<const Path> paths, const Session& session,
                               TimePoint now) {
  std::vector<PathFacts> facts;
  for (const Path& path : paths)
    facts.push_back({.works = works(path),
                     .late = path.carrier && path.carrier->overdue().is_late(now),
                     .doubtful = path.carrier && path.carrier->overdue().is_doubtful(now),
                     .cost = path.cost,
                     .order = path.order,
                     .rtt = path.carrier ? path.carrier->rtt().smoothed() : Duration{}});
  for (const Path& path : paths)
    if (path.carrier) path.carrier->overdue().set_watched(paths.size() > 1);
  const bool asked = session.outgoing().asked_for(config::PathPolicy::sum, now);
  return choice_.choose(policy, asked ? Sharing::asked_for : Sharing::as_policy, facts, now);
}

// Helpers, in addition to the path that serves the policy `sum`. The session learns what they send together.
std::vector<PathRoutes::Helper> PathSharing::helpers(const PathShares& shares, std::span<const Path> paths,
                                                     Session& session) {
  UdpCarrier* const main = shares.fastest ? paths[*shares.fastest].carrier : nullptr;
  std::vector<PathRoutes::Helper> helpers;
  std::uint64_t rate = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const UdpCarrier* const carrier = paths[i].carrier;
    if (!carrier || !main || std::ranges::find(shares.helpers, i) == shares.helpers.end()) continue;
    helpers.push_back({carrier->id(), backlog_for(*carrier, *main)});
    rate += carrier->rate().bytes_per_second();
    most = std::max(most, helpers.back().backlog);
  }
  session.outgoing().set_helpers(rate, most);
  return helpers;
}

// Streams that request another policy than the peer's.
PathRoutes PathSharing::routes(config::PathPolicy policy, const PathShares& shares,
                               std::span<const Path> paths) {
  using config::PathPolicy;
  PathRoutes routes{.usual = policy};
  const auto lead = [&](PathPolicy of, std::optional<std::size_t> path) {
    if (path && paths[*path].carrier)
      routes.carriers[static_cast<std::size_t>(of)] = paths[*path].carrier->id();
  };
  lead(PathPolicy::sum, shares.fastest);
  lead(PathPolicy::best, shares.fastest);
  lead(PathPolicy::failover, shares.first);
  return routes;
}

// Copies what a doubtful path has in flight, and what is sent meanwhile.
void PathSharing::copy(const PathShares& shares, std::span<const Path> paths, Session& session,
                       TimePoint now) {
  UdpCarrier* const target = shares.second ? paths[*shares.second].carrier : nullptr;
  const CarrierId id = target ? target->id() : kNoCarrier;
  session.outgoing().copy_on(id);
  if (std::exchange(copied_on_, id) != id) copied_.clear();
  if (!target) return;
  std::vector<CarrierId> doubtful;
  for (const Path& path : paths) {
    if (!works(path) || path.carrier == target || !path.carrier->overdue().is_doubtful(now)) continue;
    doubtful.push_back(path.carrier->id());
    if (std::ranges::find(copied_, doubtful.back()) == copied_.end()) path.carrier->copy_in_flight(now);
  }
  copied_ = std::move(doubtful);
}

bool PathSharing::apply(config::PathPolicy policy, const PathShares& shares, std::span<const Path> paths,
                        Session& session, TimePoint now) {
  UdpCarrier* const preferred = shares.preferred ? paths[*shares.preferred].carrier : nullptr;
  const bool is_new = preferred && preferred->id() != session.preferred();
  // Before a carrier is preferred: its line rate is that of all.
  auto helping = helpers(shares, paths, session);
  if (is_new) preferred->prefer(now);
  PathRoutes to = routes(policy, shares, paths);
  to.helpers = std::move(helping);
  session.route(to);
  copy(shares, paths, session, now);
  // Their packets in flight are sent again on the preferred path, which responds.
  if (preferred && !preferred->overdue().is_late(now))
    for (const Path& path : paths)
      if (path.carrier && path.carrier != preferred && path.carrier->overdue().is_silent(now))
        path.carrier->give_way(now);
  return is_new;
}

}  // namespace longhaul::link::udp
