// SPDX-License-Identifier: Apache-2.0
// An application in lock step on a simulated pair, as SMB1 is: it asks for a block when the one before has
// come.
#pragma once
#include <optional>

#include "simulated_flow.h"

namespace longhaul::link::simulation {

// Of a flow that stays open: from the first question until the last block has come; nothing where that takes
// longer than `most`. A question is not sent as bytes, it takes `way` to get to the server.
template <class AnyPair>
std::optional<Duration> read_in_lock_step(AnyPair& pair, Flow& flow, std::uint64_t block_bytes,
                                          unsigned blocks, Duration way, Duration most) {
  const auto answer = [&pair, &flow, block_bytes] {
    flow.server_writes.total += block_bytes;
    flow.server_writes.pump(*pair.b.session.find(flow.id));
    pair.node_b.wake();
  };
  const TimePoint start = pair.now();
  const std::uint64_t before = flow.client_reads.read;
  TimePoint last = start;
  unsigned asked = 1;
  flow.client_reads.on_read = [&] {
    last = pair.now();
    if (flow.client_reads.read - before < asked * block_bytes || asked == blocks) return;
    ++asked;
    pair.network().after(way, answer);
  };
  pair.network().after(way, answer);
  const bool came =
      pair.run_until([&] { return flow.client_reads.read - before == blocks * block_bytes; }, most);
  flow.client_reads.on_read = nullptr;
  return came ? std::optional(last - start) : std::nullopt;
}

}  // namespace longhaul::link::simulation
