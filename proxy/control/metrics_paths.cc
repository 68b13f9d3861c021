// SPDX-License-Identifier: Apache-2.0
// The metrics of several paths to one peer ([[peer.path]]). Omitted for links without paths.
#include <chrono>

#include "proxy/control/metrics_parts.h"

namespace longhaul::control {
namespace {

double seconds(std::chrono::microseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void add_paths(Families& families, const Status& status) {
  using link::PathRole;
  auto role =
      families.gauge("path_role",
                     "1 for the current use of the path, otherwise 0: carries (everything, or all but "
                     "what others take), helps (bulk transfers), standby (works, not used), none (does "
                     "not work).");
  auto cost = families.gauge("path_cost", "Configured cost of the path.");
  auto rtt = families.gauge("path_rtt_seconds", "Smoothed round-trip time of the path.");
  auto queue = families.gauge("path_queue_seconds", "Time that packets wait in the queue of the path.");
  auto rate =
      families.gauge("path_pacing_rate_bits", "Pacing rate of the path, in bits per second of IP packets.");
  auto erasures = families.gauge("path_erasure_ratio", "Share of packets lost at random on the path.");
  auto packets = families.counter("path_packets_total", "UDP packets of the path: sent and lost.");
  auto bytes = families.counter("path_bytes_total", "Bytes of UDP payload of the path.");
  constexpr std::pair<PathRole, const char*> kRoles[] = {{PathRole::carries, "carries"},
                                                         {PathRole::helps, "helps"},
                                                         {PathRole::standby, "standby"},
                                                         {PathRole::none, "none"}};
  for (const auto& link : status.links)
    for (const link::PathStatus& path : link.paths) {
      const auto& peer = link.peer;
      const auto& name = path.name;
      for (const auto& [each, text] : kRoles)
        role.sample({{"peer", peer}, {"path", name}, {"role", text}}, path.role == each ? 1.0 : 0.0);
      cost.sample({{"peer", peer}, {"path", name}}, static_cast<double>(path.cost));
      rtt.sample({{"peer", peer}, {"path", name}}, seconds(path.udp.smoothed_rtt));
      queue.sample({{"peer", peer}, {"path", name}}, seconds(path.udp.queue));
      rate.sample({{"peer", peer}, {"path", name}}, path.udp.pacing_rate_bits);
      erasures.sample({{"peer", peer}, {"path", name}}, path.udp.erasure_rate);
      packets.sample({{"peer", peer}, {"path", name}, {"kind", "sent"}}, path.udp.packets_sent)
          .sample({{"peer", peer}, {"path", name}, {"kind", "lost"}}, path.udp.packets_lost);
      bytes.sample({{"peer", peer}, {"path", name}, {"direction", "sent"}}, path.udp.bytes_sent)
          .sample({{"peer", peer}, {"path", name}, {"direction", "received"}}, path.udp.bytes_received);
    }
}

}  // namespace longhaul::control
