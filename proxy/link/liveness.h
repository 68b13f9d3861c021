// SPDX-License-Identifier: Apache-2.0
// Checks whether the path is alive and measures its round-trip time, queues included: when to send pings, and
// when the path counts as silent.
#pragma once
#include <algorithm>
#include <array>
#include <optional>

#include "proxy/link/questions.h"
#include "proxy/link/types.h"

namespace longhaul::link {

// After this long without a completed round trip, the two sides count as apart. So each can draw conclusions
// from silence: a side that answers requests on behalf of the peer stops kApart after it sent the last data
// that the peer is known to have received (`confirmed`). The peer may assume that it has stopped kApart after
// last hearing from it (`heard`), plus a margin for clocks, because it received that data later than it was
// sent.
inline constexpr Duration kApart = std::chrono::seconds(10);

// While flows are open a ping is sent at least this often: even if one is lost, data sent up to a second and
// a round trip ago is confirmed. Modules rely on that.
inline constexpr Duration kBusyPing = std::chrono::milliseconds(400);

struct Contact {
  TimePoint since{};      // never apart since then; all zero: unknown
  TimePoint confirmed{};  // data sent until then has reached the peer
  TimePoint heard{};      // when data of the peer last arrived
};

class Liveness {
 public:
  // A carrier is up; `rtt` is the round trip of its handshake, zero if unknown.
  void start(TimePoint now, Duration rtt);
  void stop() { started_ = ping_due_ = false; }

  // `busy`: data waits for the peer. The path then counts as silent after max(1 s, 4 × smoothed RTT), else
  // after 3 s.
  void on_timeout(TimePoint now, bool busy);
  // This process did not run for so long: it sent nothing, and did not see what arrived.
  void leave_out(Duration stall, TimePoint now) {
    if (waiting_since_) *waiting_since_ = std::min(*waiting_since_ + stall, now);
  }
  bool ping_due() const { return ping_due_; }
  std::uint64_t make_ping(TimePoint now);
  void on_heard(TimePoint now);
  void on_pong(std::uint64_t number, TimePoint now);

  // A PONG is overdue: not yet silence, but the path should not carry data that cannot be taken back.
  bool overdue(TimePoint now) const;
  bool silent(TimePoint now, bool busy) const { return silent_at(busy) && now >= *silent_at(busy); }
  std::optional<TimePoint> next_timeout(bool busy, bool known_silent) const;

  Duration smoothed_rtt() const { return srtt_; }
  const Contact& contact() const { return contact_; }
  // About other carriers than the preferred one.
  Questions& questions() { return questions_; }

 private:
  void confirm(TimePoint sent, TimePoint now);

  TimePoint next_ping(bool busy) const { return last_due_ + ping_interval(busy); }
  Duration ping_interval(bool busy) const;
  std::optional<TimePoint> silent_at(bool busy) const;

  bool started_ = false;
  Duration srtt_{};
  Contact contact_;
  // A ping may be sent before the previous one is answered: on a long path several are under way.
  static constexpr std::uint64_t kTimedPings = 32;
  std::uint64_t last_number_ = 0, last_answered_ = 0;
  std::array<TimePoint, kTimedPings> sent_at_{};
  TimePoint last_due_{};  // when a ping was due, which may be earlier than the carrier had room for it
  bool ping_due_ = false;
  Questions questions_;
  std::optional<TimePoint> waiting_since_;  // when the first ping became due since anything was received
};

}  // namespace longhaul::link
