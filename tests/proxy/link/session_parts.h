// SPDX-License-Identifier: Apache-2.0
// The parts of a session without the session, for tests of each: what the peer sends goes to `incoming`, what
// this side sends comes from `outgoing`.
#pragma once
#include <catch2/catch.hpp>
#include <type_traits>
#include <vector>

#include "hand_peer.h"
#include "proxy/link/incoming.h"
#include "proxy/link/outgoing.h"
#include "table_of_streams.h"

namespace longhaul::link::testing {

struct SessionParts : TableOfStreams {
  explicit SessionParts(Side own_side = Side::acceptor, std::uint32_t most = 4)
      : side(own_side), lifetimes(context, streams, open_credit, due, own_side, most) {
    carriers.add(kCarrier, true);
    carriers.prefer(*carriers.find(kCarrier));
    lifetimes.grant_open_credit();
  }
  static constexpr CarrierId kCarrier{1};

  Result<void> receive(const Frame& frame) {
    Buffer bytes;
    write_frame(frame, bytes);
    return incoming.feed(assembler, bytes);
  }
  // A flow of the peer, and its first bytes.
  Result<void> receive_open(StreamId id, const Buffer& plain = {}) {
    const Buffer open = simulation::open_record(simulation::some_request());
    return receive(StreamFrame{id, 0_offset, plain.empty() ? open : simulation::joined({open, plain})});
  }
  template <class Kind>
  std::vector<Kind> sent() {
    Buffer out;
    outgoing.transmit(kCarrier, 1 << 20, 16 * 1024, out, context.now);
    std::vector<Kind> list;
    for (Bytes rest = out; !rest.empty();) {
      const auto parsed = parse_frame(rest);
      REQUIRE((parsed && *parsed));
      if (const auto* of_kind = std::get_if<Kind>(&*(*parsed)->frame)) list.push_back(*of_kind);
      rest = rest.subspan((*parsed)->consumed);
    }
    return list;
  }

  Side side;
  SessionCarriers carriers;
  Liveness liveness;
  OpenCredit open_credit{pool};
  SessionEvents events{streams};
  DueFrames due{context, streams, control, open_credit, liveness};
  StreamLifetimes lifetimes;
  Incoming incoming{context, streams, lifetimes, control, open_credit, due, liveness, events};
  ControlStream control{context, incoming.reader()};
  Outgoing outgoing{context, streams, control, due, carriers};
  FrameAssembler assembler;
};

}  // namespace longhaul::link::testing
