// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/session_events.h"

#include <catch2/catch.hpp>

#include "table_of_streams.h"

using namespace longhaul::link;
using namespace longhaul::link::testing;

TEST_CASE("of one kind and stream one event waits, in order with the others") {
  TableOfStreams table;
  SessionEvents events(table.streams);
  Stream& stream = table.open(1_stream);
  for (int i = 0; i < 3; ++i) {
    events.tell(Event::Kind::peer_allows);
    events.tell(stream.entry(), EventKind::readable);
    events.tell(stream.entry(), EventKind::writable);
  }
  CHECK(events.poll()->kind == Event::Kind::peer_allows);
  CHECK(events.poll()->stream_event == EventKind::readable);
  // Polled: the next one counts again.
  events.tell(stream.entry(), EventKind::readable);
  CHECK(events.poll()->stream_event == EventKind::writable);
  CHECK(events.poll()->stream_event == EventKind::readable);
  CHECK_FALSE(events.poll());
}

TEST_CASE("streams that have not begun, or were released, cause no events") {
  TableOfStreams table;
  SessionEvents events(table.streams);
  events.tell(table.add(2_stream).entry(), EventKind::readable);
  Stream& released = table.open(1_stream);
  events.tell(released.entry(), EventKind::readable);
  released.entry().released = true;
  events.tell(released.entry(), EventKind::writable);
  events.tell(table.open(3_stream).entry(), EventKind::readable);
  table.streams.erase(3_stream);
  CHECK_FALSE(events.poll());
}
