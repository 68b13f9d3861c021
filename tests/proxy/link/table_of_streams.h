// SPDX-License-Identifier: Apache-2.0
// Streams without a session, for tests of its parts.
#pragma once
#include <utility>
#include <vector>

#include "numbers.h"
#include "proxy/link/stream_table.h"

namespace longhaul::link::testing {

struct TableOfStreams {
  // Remembers what streams tell, and allows everything.
  struct Owner final : StreamOwner {
    void wants_to_send(StreamEntry&, const StreamOutput&) override { ++announced; }
    void tell(StreamEntry& stream, EventKind kind) override { told.emplace_back(stream.id, kind); }
    void announce_credit(StreamEntry&) override { ++credit_announced; }
    void announce_reset(StreamEntry&) override {}
    Result<void> take_open_credit(std::uint64_t) override { return {}; }
    bool admits(StreamEntry&) override { return true; }
    void reads_later(StreamEntry&) override { ++read_later; }
    std::uint64_t waiting_allowance() const override { return 1 << 20; }
    std::vector<std::pair<StreamId, EventKind>> told;
    int announced = 0, credit_announced = 0, read_later = 0;
  };

  Owner owner;
  CreditPool pool{64 << 20, 100};
  RetainedBudget retained{1 << 20};
  StreamContext context{.owner = owner, .pool = pool, .retained = RetainedShare(retained)};
  StreamTable streams;

  // As the peer opens them: not begun, or, with a request, begun by this side.
  Stream& add(StreamId id) { return streams.add(std::make_unique<Stream>(id, context)); }
  Stream& open(StreamId id) {
    OpenRequest request;
    request.destination.port = 80;
    return streams.add(std::make_unique<Stream>(id, context, request, 0, 0));
  }
};

}  // namespace longhaul::link::testing
