// SPDX-License-Identifier: Apache-2.0
// Applies the choice between several carriers of one session, each on a line of its own. The owner decides
// which carriers there are, and whether UDP is used at all.
#pragma once
#include <span>
#include <vector>

#include "proxy/link/udp/path_choice.h"
#include "proxy/link/udp/udp_carrier.h"

namespace longhaul::link::udp {

class PathSharing {
 public:
  // Paths are indexed as in PathChoice. A path without a carrier does not work.
  struct Path {
    UdpCarrier* carrier = nullptr;
    std::uint32_t cost = 1;
    std::size_t order = 0;
  };

  // The shares that the paths should have. Tells each path whether others can take over from it.
  PathShares choose(config::PathPolicy policy, std::span<const Path> paths, const Session& session,
                    TimePoint now);
  // Applies the shares. Returns whether the preferred path has changed, or was not in use.
  bool apply(config::PathPolicy policy, const PathShares& shares, std::span<const Path> paths,
             Session& session, TimePoint now);
  std::optional<TimePoint> next_change() const { return choice_.next_change(); }

 private:
  static std::vector<PathRoutes::Helper> helpers(const PathShares& shares, std::span<const Path> paths,
                                                 Session& session);
  static PathRoutes routes(config::PathPolicy policy, const PathShares& shares, std::span<const Path> paths);
  void copy(const PathShares& shares, std::span<const Path> paths, Session& session, TimePoint now);

  PathChoice choice_;
  CarrierId copied_on_;
  std::vector<CarrierId> copied_;  // doubtful carriers whose packets in flight were copied
};

}  // namespace longhaul::link::udp
