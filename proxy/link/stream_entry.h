// SPDX-License-Identifier: Apache-2.0
// A stream as its session lists it: its id, and in which of the session's queues it stands. Each queue holds
// a stream once, however often it is announced. What a stream carries, and how it ends, is in stream.h.
#pragma once
#include "proxy/config/features.h"
#include "proxy/link/types.h"

namespace longhaul::link {

struct StreamEntry {
  explicit StreamEntry(StreamId of) : id(of) {}
  StreamEntry(const StreamEntry&) = delete;
  StreamEntry& operator=(const StreamEntry&) = delete;

  const StreamId id;
  bool begun = false;  // its OPEN is known, and so are its features
  config::PathUse paths = config::PathUse::automatic;

  bool queued = false;  // for sending
  bool ack_due = false, credit_due = false, return_due = false, reset_queued = false;
  bool reset_pending = false;  // the peer has not confirmed this side's RESET
  bool reads_later = false;    // has bytes for another turn
  bool unopened = false;       // a part of its OPEN has arrived
  bool released = false;       // its flow has finished with it
  bool told_readable = false, told_writable = false, told_features = false, told_stopped = false;
};

}  // namespace longhaul::link
