// SPDX-License-Identifier: Apache-2.0
// Credit of one stream and direction, in plain bytes. The receiver grants credit, measures how fast its
// reader consumes, and may reclaim unused credit; the sender stays within the limit. PROTOCOL.md, section 5.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>

#include "proxy/link/memory.h"
#include "proxy/link/types.h"

namespace longhaul::link {

// The credit of all streams of one session.
struct SessionCredit {
  std::uint64_t granted = 0;  // outstanding above the floors
  std::uint64_t unread = 0;   // arrived, and not yet consumed by a reader
  std::uint64_t streams = 0;  // streams that hold credit, at least a floor
};

class ReceiveCredit {
 public:
  // `initial` plain bytes are granted from the start; `fixed_window` != 0 is a permanent limit of the window
  // (a line without window scaling). Pool and session outlive this object; its destructor returns all credit.
  ReceiveCredit(CreditPool& pool, SessionCredit& session, std::uint64_t initial, std::uint64_t fixed_window);
  ~ReceiveCredit();
  ReceiveCredit(const ReceiveCredit&) = delete;
  ReceiveCredit& operator=(const ReceiveCredit&) = delete;

  // The initial credit of a stream that this side opens.
  static std::uint64_t initial_grant(const CreditPool& pool, std::uint64_t fixed_window);

  // The peer opened the stream with its small reserve: raises the credit to the share of a new stream.
  // Returns whether the peer must be informed.
  bool open_up(TimePoint now);

  Result<void> on_received(std::uint64_t plain_bytes, TimePoint now);

  // Bytes have waited this long for a gap to close: a repair takes one or more round trips, and the window
  // must hold the data that the line carries meanwhile.
  void on_stall(Duration stall) { stall_ = std::max(stall_, stall); }

  // The reader consumed bytes. Returns whether the limit has moved enough to inform the sender.
  bool on_consumed(std::uint64_t plain_bytes, TimePoint now, Duration rtt);

  // No more bytes will arrive: from now on only unread bytes use credit.
  void finish();

  // Requests unused credit back if the stream was quiet for a while. Returns whether the sender must be
  // informed.
  bool reclaim(TimePoint now);
  // The sender's reply. Returns whether the sender must be informed of new credit: its reader may have
  // consumed everything meanwhile.
  bool on_returned(std::uint64_t generation, std::uint64_t limit, TimePoint now, Duration rtt);

  // The credit to report to the sender.
  std::uint64_t generation() const { return generation_; }
  std::uint64_t announced_limit() const { return proposed_ ? *proposed_ : limit_; }
  std::uint64_t outstanding() const { return limit_ - consumed_; }

 private:
  bool grow(TimePoint now, Duration rtt);
  void begin_lap(TimePoint now);
  void set_limit(std::uint64_t limit);

  CreditPool& pool_;
  SessionCredit& session_;
  std::uint64_t fixed_window_;
  std::uint64_t generation_ = 0;
  std::uint64_t limit_ = 0;  // the sender may have sent this much
  std::uint64_t received_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t target_ = 0;  // the window that the measured rate justifies
  bool finished_ = false;
  std::uint64_t from_pool_ = 0;            // outstanding credit above the floor
  std::optional<std::uint64_t> proposed_;  // a lower limit that the sender has not confirmed yet
  Duration stall_{0};                      // the longest recently, fading
  std::uint64_t epoch_consumed_ = 0;       // at the start of the current round trip
  TimePoint epoch_start_{};
  // The current attempt to double the window within little more than a round trip:
  TimePoint lap_start_{};
  std::uint64_t lap_consumed_ = 0;  // at its start
  std::uint64_t lap_window_ = 0;    // the window then
  TimePoint last_received_{};
};

class SendCredit {
 public:
  explicit SendCredit(std::uint64_t initial) : limit_(initial) {}

  std::uint64_t available() const { return limit_ - sent_; }
  void on_sent(std::uint64_t plain_bytes) {
    assert(plain_bytes <= available());
    sent_ += plain_bytes;
  }

  struct Outcome {
    bool raised = false;         // more may be sent than before
    bool tell_returned = false;  // answer with CREDIT_RETURN{generation, limit()}
  };
  Outcome on_credit(std::uint64_t generation, std::uint64_t limit);
  std::uint64_t limit() const { return limit_; }
  std::uint64_t generation() const { return generation_; }

 private:
  std::uint64_t limit_;
  std::uint64_t sent_ = 0;
  std::uint64_t generation_ = 0;
  bool lowered_ = false;  // the current generation lowered the limit, or may have
};

}  // namespace longhaul::link
