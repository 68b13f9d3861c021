// SPDX-License-Identifier: Apache-2.0
// The health of a UDP path: probed until a packet of full size is acknowledged; up while acknowledgements
// arrive; failed after a time without one, unless the other carrier does no better. Time in, decisions out;
// the carrier sends the probes.
#pragma once
#include <algorithm>
#include <bit>
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

class PathHealth {
 public:
  enum class State : std::uint8_t {
    probing,  // not known to work: only probes are sent; the session uses other carriers
    up,       // packets are acknowledged: may be preferred
    failed,   // nothing was acknowledged for too long
  };

  State state() const { return state_; }
  // Time without an acknowledgement until the path counts as dead; after half of it, the path is in doubt.
  static Duration patience(Duration smoothed_rtt) {
    return std::max<Duration>(kMinPatience, 4 * smoothed_rtt);
  }

  void begin_probing(TimePoint now, Duration smoothed_rtt) {
    state_ = State::probing;
    probe_at_ = now;
    interval_ = kFirstInterval;
    until_ = now + kProbingPatience * patience(smoothed_rtt);
  }
  bool probe_is_due(TimePoint now) const {
    return state_ == State::probing && probe_at_ && now >= *probe_at_;
  }
  void on_probe_sent(TimePoint now) {
    probe_at_ = now + interval_;
    interval_ = std::min<Duration>(2 * interval_, kMaxInterval);
  }
  // A packet that requires an acknowledgement was sent.
  void on_sent(TimePoint now) {
    if (!waits_since_) waits_since_ = now;
  }
  // Returns whether the path has become usable. An acknowledgement of an abandoned packet does not count.
  bool on_acknowledged() {
    if (state_ != State::probing) return false;
    state_ = State::up;
    probe_at_.reset();
    waits_since_.reset();
    return true;
  }
  // To be called after an acknowledgement; `more`: other packets are in flight.
  void wait_anew(bool more, TimePoint now) {
    waits_since_ = more ? std::optional(now) : std::nullopt;
    in_doubt_ = outdone_ = false;
    heard_ = 0;
  }
  // Any packet of the peer. True if packets arrive long after the last acknowledgement, at the third of them,
  // the sixth, the twelfth and so on: what this side sends gets lost, perhaps for its size.
  bool on_heard(TimePoint now, Duration smoothed_rtt) {
    if (heard_ >= kMostHeard || !waits_for(patience(smoothed_rtt) / 2, now)) return false;
    ++heard_;
    return heard_ % kSomeHeard == 0 && std::has_single_bit(heard_ / kSomeHeard);
  }
  // Reports packets of the smallest size that a path must carry, or larger: whether one was acknowledged, and
  // how many were lost.
  void on_large(bool acknowledged, unsigned lost, TimePoint now) {
    if (acknowledged || state_ != State::up) {
      narrow_since_.reset();
      large_lost_ = 0;
    } else if (lost) {
      if (!narrow_since_) narrow_since_ = now;
      large_lost_ += lost;
    }
  }
  void fail() {
    narrow_since_.reset();
    large_lost_ = 0;
    state_ = State::failed;
    probe_at_.reset();
    waits_since_.reset();
    in_doubt_ = outdone_ = false;
    heard_ = 0;
  }

  // There is another carrier: the path is only dead if that one responds meanwhile. A queue or an outage that
  // affects both is no reason to change.
  void set_rival(bool there_is) { rival_ = there_is; }
  void on_outdone() { outdone_ = in_doubt_; }
  bool in_doubt() const { return in_doubt_; }
  void on_timeout(TimePoint now, Duration smoothed_rtt) {
    in_doubt_ |= state_ == State::up && waits_for(patience(smoothed_rtt) / 2, now);
  }

  // This process did not run for so long: that is no silence of the path.
  void leave_out(Duration stall, TimePoint now) {
    const auto later = [&](TimePoint since) { return std::min(since + stall, now); };
    if (waits_since_) waits_since_ = later(*waits_since_);
    if (narrow_since_) narrow_since_ = later(*narrow_since_);
    until_ += stall;
  }

  bool waits_for(Duration time, TimePoint now) const { return waits_since_ && now - *waits_since_ >= time; }
  // No packet, or none of full size, or no probe of a path to a known peer was acknowledged for too long.
  bool is_dead(TimePoint now, Duration smoothed_rtt) const {
    if (is_narrow() && now >= *narrow_since_ + patience(smoothed_rtt)) return true;
    if (state_ == State::up) return waits_for(patience(smoothed_rtt), now) && (outdone_ || !rival_ || waits_for(kLongest, now));
    return state_ == State::probing && now >= until_;
  }
  std::optional<TimePoint> next_timeout(Duration smoothed_rtt) const {
    const auto next = without_narrowness(smoothed_rtt);
    if (!is_narrow()) return next;
    const TimePoint dead = *narrow_since_ + patience(smoothed_rtt);
    return next ? std::min(*next, dead) : dead;
  }

 private:
  bool is_narrow() const { return state_ == State::up && narrow_since_ && large_lost_ >= kManyLarge; }
  std::optional<TimePoint> without_narrowness(Duration smoothed_rtt) const {
    if (state_ == State::up) {
      if (!waits_since_) return std::nullopt;
      if (rival_ && in_doubt_ && !outdone_) return *waits_since_ + kLongest;
      return *waits_since_ + patience(smoothed_rtt) / (rival_ && !in_doubt_ ? 2 : 1);
    }
    if (state_ == State::failed) return std::nullopt;
    return probe_at_ ? std::min(*probe_at_, until_) : until_;
  }

  static constexpr Duration kFirstInterval = std::chrono::milliseconds(100);
  static constexpr Duration kMaxInterval = std::chrono::seconds(1);
  static constexpr Duration kMinPatience = std::chrono::seconds(1);
  // A peer of an earlier version responds on the carrier that it prefers, which may be the blocked one.
  static constexpr Duration kLongest = std::chrono::seconds(30);
  static constexpr unsigned kManyLarge = 10, kSomeHeard = 3, kMostHeard = 64 * kSomeHeard;
  static constexpr int kProbingPatience = 3;  // factor for a path that was never up

  State state_ = State::probing;
  std::optional<TimePoint> probe_at_;
  Duration interval_{};
  TimePoint until_{};
  std::optional<TimePoint> waits_since_;  // packets are in flight, and none was acknowledged since
  std::optional<TimePoint> narrow_since_;  // since then, packets of full size were lost and none acknowledged
  unsigned large_lost_ = 0;                // since then
  bool rival_ = false, in_doubt_ = false, outdone_ = false;
  std::uint8_t heard_ = 0;
};

}  // namespace longhaul::link::udp
