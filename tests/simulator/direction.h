// SPDX-License-Identifier: Apache-2.0
// One direction of a line: the emulator's link (rate, queue, delay, loss, disorder) and what tests want
// beside it: cuts, a policer, an MTU, flipped bits, a tap. network.h has the endpoints.
#pragma once
#include <functional>

#include "tests/simulator/datagram.h"

namespace longhaul::simulator {

using wan::Policer;

struct DirectionConfig {
  wan::LinkConfig link{};
  std::optional<Policer> policer{};  // before the queue
  std::uint32_t mtu_bytes = 0;       // larger IP packets are dropped silently; 0: no limit
  double corrupt = 0;                // share of datagrams in which 1 to 8 bits are flipped
};

struct DirectionCounters {
  wan::LinkCounters link{};
  std::uint64_t cut = 0;  // came to the line, or to its end, while it was cut
  std::uint64_t policed = 0;
  std::uint64_t too_large = 0;
  std::uint64_t corrupted = 0;
};

class Direction final : public Timer {
 public:
  using Deliver = std::function<void(Datagram& datagram)>;
  using DeliveredAll = std::function<void()>;
  using Tap = std::function<void(const Datagram& datagram)>;

  Direction(Timeline& timeline, DatagramPool& pool, const DirectionConfig& config, std::uint64_t seed);

  // `deliver` for each datagram that comes out, `delivered_all` after those of one moment.
  void connect(Deliver deliver, DeliveredAll delivered_all);
  // Interrupts of a receiver come at most this often: what arrives in between comes at once. 0: each by
  // itself.
  void set_interrupt_interval(Duration interval) { interrupt_interval_ = interval; }

  // The sender's end. The payload is copied.
  void enter(Address from, Address to, Bytes payload, std::uint32_t ip_bytes,
             wan::Ecn ecn = wan::Ecn::not_capable);

  // From now on, for what has not been sent yet: see wan::Link::change.
  void change(const DirectionConfig& config);
  const DirectionConfig& config() const { return config_; }
  // What comes to the line, or would come out, while it is cut is gone.
  void cut() { up_ = false; }
  void restore() { up_ = true; }
  bool up() const { return up_; }

  // Sees every datagram at the sender's end, before anything happens to it, and what `inject` sends.
  void tap(Tap tap) { tap_ = std::move(tap); }

  std::uint64_t queued_bytes() { return link_.queued_bytes(timeline().now()); }
  // How long a packet that came now would wait before its first bit is sent.
  Duration queue_delay();
  DirectionCounters counters() const;
  void reset_counters();

 private:
  void fire(TimePoint now) override;
  void flip_bits(Datagram& datagram);
  void arm();

  DatagramPool& pool_;
  DirectionConfig config_;
  wan::Link link_;
  wan::Chance corruption_;
  Deliver deliver_;
  DeliveredAll delivered_all_;
  Tap tap_;
  DirectionCounters counters_{};
  Duration interrupt_interval_{0};
  TimePoint last_interrupt_{};
  bool up_ = true;
  wan::TokenBucket bucket_;
  std::vector<std::byte> copy_;  // of a datagram that is delivered twice
};

}  // namespace longhaul::simulator
