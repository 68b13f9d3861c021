// SPDX-License-Identifier: Apache-2.0
// Spaces packets in time at a rate: how many bytes may be sent now, and when the next ones. A RateLaw sets
// the rate; the driver's timer may be late.
#pragma once
#include <cstdint>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

class Pacer {
 public:
  // `packet_bytes`: IP bytes of a full packet; one of them may be sent at a time at any rate.
  Pacer(TimePoint now, std::uint64_t bytes_per_second, std::uint32_t packet_bytes);

  void set_rate(TimePoint now, std::uint64_t bytes_per_second);
  void set_packet_bytes(std::uint32_t packet_bytes) { packet_bytes_ = packet_bytes; }

  // IP bytes that may be sent at once: at most 1 ms of the rate, or one packet. 0: wait until next_send().
  // The last packet of a send may exceed it; the pacer waits for the excess afterwards.
  std::uint64_t allowance(TimePoint now);
  // When a whole send is allowed. If the caller has data, it calls again at that time: the pacer makes up for
  // its lateness, within bounds.
  TimePoint next_send(TimePoint now);
  // How long the line was idle because the caller was later than usual, beyond what is made up for; to be
  // called before allowance().
  Duration missed(TimePoint now) const;
  void on_sent(TimePoint now, std::uint64_t bytes);
  // Nothing to send, or no window: idle time earns no more than a short burst.
  void on_idle(TimePoint now);

  static constexpr Duration kSend = std::chrono::milliseconds(1);
  static constexpr Duration kBurst = std::chrono::milliseconds(2);         // earned at most while idle
  static constexpr Duration kMaxLateness =
      std::chrono::milliseconds(20);  // a timer's lateness that is made up for
  // Made up for at once, at any rate, after a single late timer: together with a send it fits into a queue of
  // 64 KiB, and few lines have a shorter one.
  static constexpr double kSafeBytes = 32 * 1024;

 private:
  void earn(TimePoint now);
  double bytes_in(Duration time) const;
  double send_bytes() const;
  double most_credit(TimePoint now) const;
  double made_up(Duration lateness) const;
  Duration lateness(TimePoint now) const;

  double rate_;  // bytes per second
  std::uint32_t packet_bytes_;
  TimePoint earned_at_;
  double credit_;         // bytes; negative: sent ahead
  bool waiting_ = false;  // the caller sleeps until next_send()
  TimePoint wake_at_{};
  Duration usual_lateness_{0};
};

}  // namespace longhaul::link::udp
