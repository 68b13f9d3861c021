// SPDX-License-Identifier: Apache-2.0
// Decides how many repair packets to send, and when, from the measured loss, its burstiness, and the
// tolerable delay of a class of traffic. The caller makes and sends the repairs.
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

// Symbols of different classes are protected separately: each class has an encoder, a decoder and numbers of
// its own, because a window is a run of numbers and must not be diluted by bulk.
enum class Class : std::uint8_t { interactive, bulk, fixed };
inline constexpr std::size_t kClasses = 3;
constexpr std::size_t index_of(Class c) { return static_cast<std::size_t>(c); }

// "Make `repairs` repairs over the last `symbols` symbols of the class, but without the last `skip`, now."
struct RepairOrder {
  Class of = Class::interactive;
  std::uint32_t symbols = 0;
  std::uint32_t skip = 0;
  std::uint32_t repairs = 0;
};

struct ControllerOptions {
  // The allowed lateness of an interactive message in order, beyond the one-way delay, and the share of
  // messages that may exceed it. 1 % is promised; nearer to it than half, a queue and late timers would
  // exceed it. 0.8 % halves the repairs at 5 % loss and a message every 20 ms.
  Duration interactive_deadline = std::chrono::milliseconds(25);
  double interactive_late = 0.004;
  // Subtracted from the deadline, because timers, the pacer and the receiver wake up a little late.
  Duration slack = std::chrono::milliseconds(3);
  // How long the sender must have had nothing to send before the last packets count as a tail.
  Duration quiet = std::chrono::milliseconds(3);
  std::uint32_t kept_symbols = 2048;  // of the bulk encoder: further back a tail cannot be protected
  // How long bulk is protected without a pause. Each packet gives up some 20 bytes for it (1.4 %), which a
  // tail that needs no further round trip pays back in a short transfer and not in a long one.
  int bulk_round_trips = 40;
  double bulk_overhead = 0.015;            // repairs of tails, of bulk bytes sent, beyond what was lost
  std::uint32_t tail_credit_packets = 32;  // that short transfers may spend before they have earned it
};

class Controller {
 public:
  struct Counters {
    std::array<std::uint64_t, kClasses> symbols{};
    std::array<std::uint64_t, kClasses> repairs{};  // ordered
  };

  explicit Controller(ControllerOptions options = {});

  // Whether the next packet, with bytes of such traffic under such a mode, becomes a symbol, and of which
  // class. nullopt: it goes plain (nothing is being lost, or the mode is off). Where flows of several modes
  // share a packet the caller asks with the strongest.
  std::optional<Class> protects(Traffic traffic, Mode mode) const;

  // A packet was sent; its class if it is a symbol. Repairs count as packets without a class.
  void on_sent(TimePoint now, std::optional<Class> symbol, Mode mode = {});

  // The fate of packets since the last report (one per ACK event or timer is fine), and the state of the
  // path.
  void on_report(TimePoint now, const LossReport& report, Duration smoothed_rtt);

  // There is nothing to send now. May be called as often as that is true.
  void on_quiet(TimePoint now);

  // The repairs to make now, at most a few at once. Call it when they could be sent at once, until it returns
  // nothing: after on_sent and at next_timeout(). Returned repairs count as sent.
  std::optional<RepairOrder> poll_order(TimePoint now);
  // When poll_order() will return repairs; may be in the past only until that is called.
  std::optional<TimePoint> next_timeout() const;

  // Share of packets that the path loses at random; 0 on a clean path and if only queues overflow.
  double erasure_rate() const { return loss_.rate(); }
  const Counters& counters() const { return counters_; }

 private:
  // Symbols that no repair covers yet, of a class whose repairs follow groups.
  struct Group {
    std::uint32_t symbols = 0;
    std::optional<TimePoint> due;    // when it gets its repairs, full or not
    std::uint32_t ready = 0;         // repairs to be made now, as soon as they are clear of a burst
    std::uint64_t after_packet = 0;  // `packets_` when the last symbol or repair of the class left,
    TimePoint after{};               // and when that was
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
  std::uint64_t packets_ = 0;  // that left, of all kinds

  Grouping grouping_;                       // protection of interactive traffic,
  Conditions conditions_;                   // for these conditions
  std::deque<TimePoint> interactive_sent_;  // of the last symbols, the newest behind
  Duration spacing_{};                      // of interactive messages, smoothed; 0 until two have been sent
  double packets_between_ = 1;              // packets of all kinds from one of them to the next, smoothed
  std::uint64_t last_interactive_packet_ = 0;
  Group interactive_;

  std::optional<TimePoint> quiet_since_;
  std::optional<TimePoint> busy_since_;  // the end of the last pause that was one
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
