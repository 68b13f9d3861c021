// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_sharing.h"

#include <algorithm>

namespace longhaul::link::udp {
namespace {

using State = UdpCarrier::State;

// The end of a transfer is left to the preferred path, even if the other one is as fast: there is nothing to
// gain, and two paths reorder it.
constexpr double kLeastBacklog = 32 * 1024, kMostBacklog = 1 << 20;

bool works(const PathSharing::Path& path) { return path.carrier && path.carrier->state() == State::up; }

// What the preferred carrier sends in the time by which the helper's packets arrive later than its own.
std::size_t backlog_for(const UdpCarrier& helper, const UdpCarrier& preferred) {
  const Duration later = (helper.smoothed_rtt() - preferred.smoothed_rtt()) / 2;
  const double bytes = std::chrono::duration<double>(std::max<Duration>(later, Duration{0})).count() *
                       static_cast<double>(preferred.pacing_rate_bits()) / 8;
  return static_cast<std::size_t>(std::clamp(bytes, kLeastBacklog, kMostBacklog));
}

}  // namespace

PathShares PathSharing::choose(config::PathPolicy policy, std::span<const Path> paths, TimePoint now) {
  std::vector<PathFacts> facts;
  for (const Path& path : paths)
    facts.push_back({.works = works(path),
                     .late = path.carrier && path.carrier->is_late(now),
                     .cost = path.cost,
                     .order = path.order,
                     .rtt = path.carrier ? path.carrier->smoothed_rtt() : Duration{}});
  const auto working = std::ranges::count_if(facts, &PathFacts::works);
  for (const Path& path : paths)
    if (path.carrier) path.carrier->set_watched(working > 1);
  return choice_.choose(policy, facts, now);
}

bool PathSharing::apply(const PathShares& shares, std::span<const Path> paths, Session& session,
                        TimePoint now) {
  UdpCarrier* const preferred = shares.preferred ? paths[*shares.preferred].carrier : nullptr;
  const bool is_new = preferred && !preferred->is_preferred();
  std::uint64_t rate = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    UdpCarrier* const carrier = paths[i].carrier;
    if (!carrier) continue;
    const bool helps = preferred && std::ranges::find(shares.helpers, i) != shares.helpers.end();
    if (!helps) {
      carrier->stop_helping();
      continue;
    }
    const std::size_t backlog = backlog_for(*carrier, *preferred);
    carrier->help(backlog);
    rate += carrier->pacing_rate_bits() / 8;
    most = std::max(most, backlog);
  }
  session.outgoing().set_helpers(rate, most);
  if (is_new) preferred->prefer(now);
  // What they have in flight is sent again on the preferred one, which answers.
  if (preferred && !preferred->is_late(now))
    for (const Path& path : paths)
      if (path.carrier && path.carrier != preferred && path.carrier->is_silent(now))
        path.carrier->give_way(now);
  return is_new;
}

}  // namespace longhaul::link::udp
