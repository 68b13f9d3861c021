// SPDX-License-Identifier: Apache-2.0
// A stream's entry in its session: its id, and which of the session's queues hold it. Each queue holds a
// stream once, however often it is added. stream.h has the data of a stream, and how it ends.
#pragma once
#include "proxy/config/features.h"
#include "proxy/link/types.h"

namespace longhaul::link {

struct StreamEntry {
  explicit StreamEntry(StreamId of) : id(of) {}
  StreamEntry(const StreamEntry&) = delete;
  StreamEntry& operator=(const StreamEntry&) = delete;

  const StreamId id;
  bool begun = false;  // its OPEN was read, so its features are known
  config::PathUse paths = config::PathUse::automatic;

  bool queued = false;  // for sending
  bool ack_due = false, credit_due = false, return_due = false, reset_queued = false;
  bool reset_pending = false;  // the peer has not confirmed this side's RESET
  bool reads_later = false;    // has unread bytes for another turn
  bool unopened = false;       // only a part of its OPEN has arrived
  bool released = false;       // its flow no longer uses it
  bool told_readable = false, told_writable = false, told_features = false, told_stopped = false;
};

}  // namespace longhaul::link
