// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/due_frames.h"

#include <algorithm>

namespace longhaul::link {
namespace {

// Entries of one ACK or CREDIT frame: few enough for any packet.
constexpr std::size_t kEntriesPerFrame = 40;
// Limit for each kind in one call of write(): there may be one for each stream.
constexpr std::size_t kMostAtOnce = 10 * kEntriesPerFrame;

std::optional<StreamId> take_first(std::deque<StreamId>& ids) {
  if (ids.empty()) return std::nullopt;
  const StreamId first = ids.front();
  ids.pop_front();
  return first;
}

// Collects entries, and writes a frame whenever it is full.
template <class Frame>
class Entries {
 public:
  explicit Entries(Buffer& out) : out_(out) {}
  ~Entries() { flush(); }
  Entries(const Entries&) = delete;
  Entries& operator=(const Entries&) = delete;

  template <class... Values>
  void add(Values... values) {
    frame_.entries.push_back({values...});
    if (frame_.entries.size() == kEntriesPerFrame) flush();
  }

 private:
  void flush() {
    if (!frame_.entries.empty()) write_frame(frame_, out_);
    frame_.entries.clear();
  }
  Buffer& out_;
  Frame frame_;
};

}  // namespace

void DueFrames::ack(StreamEntry& stream) {
  if (!std::exchange(stream.ack_due, true)) acks_.push_back(stream.id);
}

void DueFrames::ack_again(StreamId gone, StreamOffset offset) {
  StreamOffset& due = repeated_acks_[gone];
  due = std::max(due, offset);
}

void DueFrames::remember_last_ack(StreamId stream, StreamOffset offset) {
  last_acks_.emplace_back(stream, offset);
  if (last_acks_.size() > kMaxLastAcks) last_acks_.pop_front();
}

bool DueFrames::repeat_last_acks() {
  for (const auto& [stream, offset] : last_acks_) repeated_acks_.emplace(stream, offset);
  return !last_acks_.empty();
}

void DueFrames::credit(StreamEntry& stream) {
  if (!std::exchange(stream.credit_due, true)) credits_.push_back(stream.id);
}

void DueFrames::credit_return(StreamEntry& stream) {
  if (!std::exchange(stream.return_due, true)) returns_.push_back(stream.id);
}

void DueFrames::reset(StreamEntry& stream) {
  if (!std::exchange(stream.reset_queued, true)) resets_.push_back(stream.id);
}

bool DueFrames::urgent() const {
  return !pongs_.empty() || !resets_.empty() || !reset_done_.empty() || !returns_.empty() ||
         !credits_.empty() || open_credit_due_ || liveness_.ping_due();
}

void DueFrames::write(Buffer& out) {
  for (const std::uint64_t number : std::exchange(pongs_, {})) write_frame(PongFrame{number}, out);
  if (liveness_.ping_due()) write_frame(PingFrame{liveness_.make_ping(context_.now)}, out);
  if (std::exchange(open_credit_due_, false))
    write_frame(OpenCreditFrame{open_credit_.granted(), context_.pool.floor_bytes()}, out);
  write_resets(out);
  write_credit(out);
  write_acks(out);
}

void DueFrames::write_resets(Buffer& out) {
  for (std::size_t room = kMostAtOnce; room > 0; --room) {
    const auto id = take_first(resets_);
    if (!id) break;
    Stream* stream = streams_.find(*id);
    if (!stream || !stream->entry().reset_pending) continue;
    stream->entry().reset_queued = false;
    write_frame(ResetFrame{*id, stream->reset_code(), stream->writer().open_credit()}, out);
  }
  for (std::size_t room = kMostAtOnce; room > 0 && !reset_done_.empty(); --room)
    write_frame(ResetDoneFrame{reset_done_.extract(reset_done_.begin()).value()}, out);
}

void DueFrames::write_credit(Buffer& out) {
  for (std::size_t room = kMostAtOnce; room > 0; --room) {
    const auto id = take_first(returns_);
    if (!id) break;
    Stream* stream = streams_.find(*id);
    if (!stream) continue;
    stream->entry().return_due = false;
    const SendCredit& credit = stream->writer().credit();
    write_frame(CreditReturnFrame{*id, credit.generation(), credit.limit()}, out);
  }
  Entries<CreditFrame> entries(out);
  for (std::size_t room = kMostAtOnce; room > 0; --room) {
    const auto id = take_first(credits_);
    if (!id) break;
    Stream* stream = streams_.find(*id);
    if (!stream) continue;
    stream->entry().credit_due = false;
    if (const ReceiveCredit* credit = stream->reader().credit())
      entries.add(*id, credit->generation(), credit->announced_limit());
  }
}

// ACKs are added to any packet that is sent anyway.
void DueFrames::write_acks(Buffer& out) {
  {
    Entries<AckFrame> entries(out);
    if (std::exchange(control_ack_, false)) entries.add(kControlStream, control_.received());
    for (std::size_t room = kMostAtOnce; room > 0 && !repeated_acks_.empty(); --room) {
      const auto first = repeated_acks_.extract(repeated_acks_.begin());
      entries.add(first.key(), first.mapped());
    }
    for (std::size_t room = kMostAtOnce; room > 0; --room) {
      const auto id = take_first(acks_);
      if (!id) break;
      Stream* stream = streams_.find(*id);
      if (!stream) continue;
      stream->entry().ack_due = false;
      entries.add(*id, stream->reader().wire_received());
    }
  }
  ack_timer_.on_written();
  if (acks_left()) ack_timer_.due(context_.now, context_.now);
}

}  // namespace longhaul::link
