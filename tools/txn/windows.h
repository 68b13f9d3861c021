// SPDX-License-Identifier: Apache-2.0
// One message in windows of datagrams, as the source describes it: the receiver acknowledges each complete
// window, and says what is missing when it is asked; the sender sends that again, and the whole window when
// no answer comes in time. No sockets and no clock; which message it is, and its bytes, are the exchange's.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace longhaul::txn {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// How a message is cut.
struct Cut {
  std::uint32_t message_bytes = 1;
  std::uint32_t piece_bytes = 1;  // of the message, in one datagram
  std::uint32_t pieces_in_window = 1;
  std::uint32_t windows() const;
  std::uint32_t pieces_of(std::uint32_t window) const;  // fewer in the last one
  std::uint32_t offset_of(std::uint32_t window, std::uint32_t index) const;
  std::uint32_t bytes_of(std::uint32_t window, std::uint32_t index) const;
};

// When to give up waiting: by measured round trips (RFC 6298, with a smaller least, since the answer is never
// delayed), or always after the same time.
class RetransmitTimer {
 public:
  explicit RetransmitTimer(Duration fixed) : fixed_(fixed) {}  // zero: measured
  Duration timeout() const;
  void measured(Duration round_trip);
  void expired();  // the next time-out is twice as long, until a round trip has been measured

 private:
  Duration fixed_;
  std::optional<Duration> smoothed_;
  Duration variation_{};
  Duration timeout_ = std::chrono::seconds{1};
};

struct Counts {
  std::uint64_t sent_again = 0;  // datagrams
  std::uint64_t timeouts = 0;
  std::uint64_t negatives = 0;  // negative acknowledgements that were followed
};

class WindowSender {
 public:
  WindowSender(Cut cut, RetransmitTimer& timer);

  struct Piece {
    std::uint32_t window;
    std::uint16_t burst;
    std::uint16_t index;
    bool asks;
  };
  std::optional<Piece> poll(TimePoint now);
  std::optional<TimePoint> next_timeout() const { return timeout_at_; }
  void on_timeout(TimePoint now);
  void on_acknowledgement(TimePoint now, std::uint32_t window, std::uint16_t burst);
  void on_negative(std::uint32_t window, std::uint16_t burst, std::span<const std::uint16_t> missing);
  void finish();  // another message says that all has arrived
  bool done() const { return window_ == cut_.windows(); }
  const Counts& counts() const { return counts_; }

 private:
  void begin_window();

  Cut cut_;
  RetransmitTimer& timer_;
  std::uint32_t window_ = 0;
  std::uint16_t burst_ = 0;
  std::deque<std::uint16_t> pending_;  // of this burst, not yet sent
  std::optional<TimePoint> timeout_at_;
  TimePoint burst_sent_{};
  Counts counts_;
};

class WindowReceiver {
 public:
  explicit WindowReceiver(Cut cut);

  struct Answer {
    std::uint32_t window;
    std::uint16_t burst;
    std::vector<std::uint16_t> missing;  // empty: the window is complete
  };
  struct Taken {
    bool is_new = false;  // its bytes had not arrived before
    std::optional<Answer> answer;
  };
  // What cannot be part of the message is ignored.
  Taken on_piece(std::uint32_t window, std::uint16_t burst, std::uint16_t index, std::size_t bytes,
                 bool asks);
  bool done() const { return window_ == cut_.windows(); }

 private:
  Cut cut_;
  std::uint32_t window_ = 0;
  std::vector<bool> arrived_;
  std::uint32_t left_;
};

}  // namespace longhaul::txn
