// SPDX-License-Identifier: Apache-2.0
// Decides how many repair packets to send, and when, from the measured loss, its burstiness, and the
// tolerable delay of a class of traffic. The caller creates and sends the repairs.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "fec/grouping.h"
#include "fec/loss_estimate.h"

namespace longhaul::fec {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// A flow's rule for error correction.
struct Mode {
  enum class Kind : std::uint8_t { off, adaptive, fixed } kind = Kind::adaptive;
  std::uint8_t source_packets = 0;  // K of K:M, only with Kind::fixed
  std::uint8_t repair_packets = 0;  // M
  bool operator==(const Mode&) const = default;
};

enum class Traffic : std::uint8_t { interactive, bulk };

// Symbols of different classes are protected separately: each class has its own encoder, decoder and numbers,
// because a window is a range of numbers and must not be diluted by bulk data.
enum class Class : std::uint8_t { interactive, bulk, fixed };
inline constexpr std::size_t kClasses = 3;
constexpr std::size_t index_of(Class c) { return static_cast<std::size_t>(c); }

// An order to make `repairs` repairs now, over the last `symbols` symbols of the class, except the last
// `skip`.
struct RepairOrder {
  Class of = Class::interactive;
  std::uint32_t symbols = 0;
  std::uint32_t skip = 0;
  std::uint32_t repairs = 0;
};

struct ControllerOptions {
  // The allowed lateness of in-order delivery of an interactive message, beyond the one-way delay, and the
  // share of messages that may exceed it. The promise is 1 %; with more than half of that, a queue and late
  // timers would exceed it. 0.8 % would halve the repairs at 5 % loss and a message every 20 ms.
  Duration interactive_deadline = std::chrono::milliseconds(25);
  double interactive_late = 0.004;
  // Subtracted from the deadline, because timers, the pacer and the receiver are always a little late.
  Duration slack = std::chrono::milliseconds(3);
  // How long the sender must have had nothing to send before the last packets count as a tail.
  Duration quiet = std::chrono::milliseconds(3);
  std::uint32_t kept_symbols = 2048;  // of the bulk encoder: older symbols cannot be protected
  // How long bulk data is protected without a pause. That costs about 20 bytes per packet (1.4 %). A short
  // transfer regains this because its tail needs no further round trip; a long one does not.
  int bulk_round_trips = 40;
  double bulk_overhead = 0.015;            // tail repairs per bulk byte sent, beyond lost bytes
  std::uint32_t tail_credit_packets = 32;  // which short transfers may use before they have earned it
};

class Controller {
 public:
  struct Counters {
    std::array<std::uint64_t, kClasses> symbols{};
    std::array<std::uint64_t, kClasses> repairs{};  // ordered
  };

  explicit Controller(ControllerOptions options = {});

  // The class of the symbol that the next packet becomes, if it has bytes of such traffic with such a mode.
  // Returns nullopt if it is sent unprotected (there is no loss, or the mode is off). If flows with several
  // modes share a packet, the caller passes the strongest.
  std::optional<Class> protects(Traffic traffic, Mode mode) const;

  // A packet was sent. `symbol`: its class if it is a symbol. Repairs count as packets without a class.
  void on_sent(TimePoint now, std::optional<Class> symbol, Mode mode = {});

  // Reports the fate of packets since the last report (one report per ACK or timer is fine), and the state of
  // the path.
  void on_report(TimePoint now, const LossReport& report, Duration smoothed_rtt);

  // There is nothing to send now. May be called repeatedly.
  void on_quiet(TimePoint now);

  // Returns the repairs to make now, at most a few at once. To be called when they could be sent at once,
  // until it returns nullopt: after on_sent() and at next_timeout(). Returned repairs count as sent.
  std::optional<RepairOrder> poll_order(TimePoint now);
  // When poll_order() will return repairs. In the past only until poll_order() is called.
  std::optional<TimePoint> next_timeout() const;

  // Share of packets that the path loses at random; 0 on a path without loss, or if only queues overflow.
  double erasure_rate() const { return loss_.rate(); }
  const Counters& counters() const { return counters_; }

 private:
  // Symbols that no repair covers yet, in a class with repairs after groups.
  struct Group {
    std::uint32_t symbols = 0;
    std::optional<TimePoint> due;    // when its repairs are due, even if it is not full
    std::uint32_t ready = 0;         // repairs to make as soon as they are clear of a burst
    std::uint64_t after_packet = 0;  // `packets_` when the last symbol or repair of the class was sent,
    TimePoint after{};               // and the time of that
  };
  struct TailBlock {
    std::uint64_t begin, end;  // bulk symbols, counted from the first
    std::uint32_t repairs;
  };

  void note_pauses(TimePoint now);
  void on_interactive(TimePoint now);
  void on_bulk(TimePoint now);
  void on_fixed(TimePoint now, Mode mode);
  void regroup();
  bool bursty() const;
  void close_group(Class of, TimePoint now);
  void plan_tail(TimePoint now);
  bool clear_of_burst(const Group& group, TimePoint now) const;
  std::optional<RepairOrder> order(Class of, std::uint32_t symbols, std::uint32_t skip,
                                   std::uint32_t repairs);

  ControllerOptions options_;
  LossEstimate loss_;
  Duration smoothed_rtt_ = std::chrono::milliseconds(100);
  Counters counters_;
  std::uint64_t packets_ = 0;  // packets sent, of all kinds

  Grouping grouping_;                       // protection of interactive traffic,
  Conditions conditions_;                   // for these conditions
  std::deque<TimePoint> interactive_sent_;  // of the last symbols, the newest last
  Duration spacing_{};                      // of interactive messages, smoothed; 0 until two were sent
  double packets_between_ = 1;              // packets of all kinds per interactive message, smoothed
  std::uint64_t last_interactive_packet_ = 0;
  Group interactive_;

  std::optional<TimePoint> quiet_since_;
  std::optional<TimePoint> busy_since_;  // the end of the last real pause
  bool bulk_pays_ = true;

  std::uint64_t bulk_symbols_ = 0;
  std::deque<TimePoint> bulk_uncovered_;
  std::optional<TimePoint> tail_due_;
  std::deque<TailBlock> tail_;
  double tail_credit_;

  Group fixed_;
  Mode fixed_mode_;
  double fixed_credit_ = 0;
};

}  // namespace longhaul::fec
