// SPDX-License-Identifier: Apache-2.0
// Checks whether the path is alive and measures its round-trip time, queues included: when to send pings, and
// when the path counts as silent.
#pragma once
#include <algorithm>
#include <array>
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::link {

// Longer than this without a completed round trip, and the two sides count as apart. What the silence of one
// allows the other: who answers by what the peer holds for him stops kApart after the last thing that the
// peer is known to have had was sent (`confirmed`). That is not later than when the peer had it (`heard`), so
// kApart after that, and a little for clocks, the peer may take it that he has stopped.
inline constexpr Duration kApart = std::chrono::seconds(10);

// While flows are open a ping goes out at least this often: one of them may be lost, and what was sent within
// the last second and a round trip is confirmed all the same. Modules count on that.
inline constexpr Duration kBusyPing = std::chrono::milliseconds(400);

struct Contact {
  TimePoint since{};      // never apart since then; all zero: not known
  TimePoint confirmed{};  // what was sent until then has come to the peer
  TimePoint heard{};      // when something of the peer's came last
};

class Liveness {
 public:
  // A carrier came up; `rtt` is what its handshake took, zero if unknown.
  void start(TimePoint now, Duration rtt);
  void stop() { started_ = ping_due_ = false; }

  // `busy`: something waits for the peer, so that silence matters within max(1 s, 4 × smoothed RTT), else
  // within 3 s.
  void on_timeout(TimePoint now, bool busy);
  bool ping_due() const { return ping_due_; }
  std::uint64_t make_ping(TimePoint now);
  void on_heard(TimePoint now);
  void on_pong(std::uint64_t number, TimePoint now);

  // An answer that was due is not here: not yet silence, but no time to entrust the path with what cannot be
  // had back.
  bool overdue(TimePoint now) const;
  bool silent(TimePoint now, bool busy) const { return silent_at(busy) && now >= *silent_at(busy); }
  std::optional<TimePoint> next_timeout(bool busy, bool known_silent) const;

  Duration smoothed_rtt() const { return srtt_; }
  const Contact& contact() const { return contact_; }

 private:
  void confirm(TimePoint sent, TimePoint now);

  TimePoint next_ping(bool busy) const { return last_due_ + ping_interval(busy); }
  Duration ping_interval(bool busy) const;
  std::optional<TimePoint> silent_at(bool busy) const;

  bool started_ = false;
  Duration srtt_{};
  Contact contact_;
  // A ping may go out before the one before it is answered: on a long path several are on their way.
  static constexpr std::uint64_t kTimedPings = 32;
  std::uint64_t last_number_ = 0, last_answered_ = 0;
  std::array<TimePoint, kTimedPings> sent_at_{};
  TimePoint last_due_{};  // when a ping was due, which is not when the carrier had room for it
  bool ping_due_ = false;
  std::optional<TimePoint> waiting_since_;  // the first ping that was due with nothing heard after it
};

}  // namespace longhaul::link
