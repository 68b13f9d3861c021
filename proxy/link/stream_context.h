// SPDX-License-Identifier: Apache-2.0
// What surrounds a stream: the interface to its session, and the limits and the codec that it shares with
// other streams.
#pragma once
#include <cstdint>

#include "codecs/block_codec.h"
#include "codecs/work.h"
#include "proxy/link/credit.h"
#include "proxy/link/memory.h"
#include "proxy/link/records.h"
#include "proxy/link/stream_entry.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class StreamOutput;

enum class EventKind : std::uint8_t {
  opened,    // the peer opened this stream: Stream::request()
  answered,  // the peer answered our open: Stream::answer()
  readable,  // bytes, a module message, or the end of the peer's direction
  writable,  // StreamWriter::may_write() is no longer zero
  features,  // the peer changed the features of the flow
  stopped,   // the peer no longer reads: nothing can be written, but the peer's earlier data is still
             // delivered
  reset,     // both directions ended: Stream::reset_code()
};

// A stream's notifications to its session.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  virtual void wants_to_send(StreamEntry& stream, const StreamOutput& output) = 0;
  virtual void tell(StreamEntry& stream, EventKind kind) = 0;
  virtual void announce_credit(StreamEntry& stream) = 0;
  virtual void announce_reset(StreamEntry& stream) = 0;
  virtual Result<void> take_open_credit(
      std::uint64_t bytes) = 0;                  // the peer used open credit for a stream
  virtual bool admits(StreamEntry& opened) = 0;  // the peer's OPEN was read: may the stream live?
  // The work of this turn is done: call Stream::read_on() in a later one.
  virtual void reads_later(StreamEntry& stream) = 0;
  // Limit of unread bytes for all streams together.
  virtual std::uint64_t waiting_allowance() const = 0;
};

// State that all streams of a daemon, or of a session, share. Everything outlives the streams.
struct StreamContext {
  StreamOwner& owner;
  CreditPool& pool;
  RetainedShare retained;
  BlockCodec* codec = nullptr;            // null: bytes are sent without blocks
  std::size_t unsent_limit = 256 * 1024;  // how much unsent data a stream may hold
  // Size limit of a stream's first block after a pause: what the line carries in a few milliseconds, so that
  // the far side does not wait long for its end.
  std::size_t first_block_bytes = kMinFirstBlock;
  // Bytes of all streams of the session that wait for a gap to close, for the end of their record, for a
  // block, or for another turn.
  std::uint64_t waiting_cost = 0;
  SessionCredit credit{};
  WorkBudget work{};
  FeatureKeys keys{};  // of the peer
  TimePoint now{};     // of the call in progress

  static constexpr std::size_t kMinFirstBlock = 1400;  // fits into one packet
};

}  // namespace longhaul::link
