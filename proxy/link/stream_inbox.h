// SPDX-License-Identifier: Apache-2.0
// Data that has arrived for a flow and waits to be read: plain bytes, and module messages between them. All
// of it uses the credit that this side grants the peer.
#pragma once
#include <optional>
#include <vector>

#include "codecs/slice_queue.h"
#include "proxy/link/credit.h"

namespace longhaul::link {

class StreamInbox {
 public:
  // The stream has begun. For the arguments see ReceiveCredit.
  ReceiveCredit& open(CreditPool& pool, SessionCredit& session, std::uint64_t initial,
                      std::uint64_t fixed_window) {
    return credit_.emplace(pool, session, initial, fixed_window);
  }
  // Null if the stream has not begun, or has no reader any more.
  ReceiveCredit* credit() { return credit_ ? &*credit_ : nullptr; }
  // Drops everything.
  void close();

  // ---- Arriving data; only while there is credit. Returns an error if the peer has exceeded it.
  Result<void> charge(std::uint64_t plain_bytes, TimePoint now) {
    return credit_->on_received(plain_bytes, now);
  }
  void add(Slice plain) { bytes_.push(std::move(plain)); }  // charged before
  Result<void> add(Bytes plain, TimePoint now);             // copied
  Result<void> add_message(Bytes body, TimePoint now);

  // ---- Reading. Functions that return bool return whether the peer must be informed of new credit.
  const SliceQueue& bytes() const { return bytes_; }
  // How many of the bytes precede the next message.
  std::size_t before_message() const;
  bool consume(std::size_t bytes, TimePoint now, Duration rtt) {
    bytes_.drop_until(bytes_.begin_offset() + bytes);
    return on_consumed(bytes, now, rtt);
  }
  // The next message, once everything before it was consumed. It uses credit until on_message_taken().
  std::optional<Slice> poll_message();
  bool on_message_taken(const Slice& body, TimePoint now, Duration rtt);

 private:
  bool on_consumed(std::size_t bytes, TimePoint now, Duration rtt) {
    return credit_ && credit_->on_consumed(bytes, now, rtt);
  }

  struct Message {
    std::uint64_t position;  // in bytes_
    Slice body;
  };

  SliceQueue bytes_;
  std::vector<Message> messages_;
  std::size_t first_message_ = 0;  // earlier ones were passed on
  std::optional<ReceiveCredit> credit_;
};

}  // namespace longhaul::link
