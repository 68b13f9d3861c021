// SPDX-License-Identifier: Apache-2.0
// Small messages over a lossy path in virtual time: the controller, the real code, and beneath them sending
// again what was lost, as a carrier would. Answers how late messages are in order. Queues and rates are the
// simulator's.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "fec/controller.h"
#include "fec/window_decoder.h"
#include "fec/window_encoder.h"

namespace longhaul::fec::test {

using namespace std::chrono_literals;

// Losses by packet number: independent, or Gilbert-Elliott where the bad state loses everything.
struct Loss {
  double rate = 0;
  double burst = 0;  // mean length; 0: independent
  double jump = -1;  // a second rate,
  std::uint64_t jump_at = 0;
};

struct Scenario {
  std::uint64_t seed = 1;
  Loss loss;
  Mode mode{};
  ControllerOptions options{};
  std::uint32_t messages = 12'000;
  std::size_t message_bytes = 200;
  Duration spacing = 20ms;
  Duration jitter{};  // of the spacing, uniform
  Duration one_way = 50ms;
  Duration bulk_spacing = 1ms;      // of packets of another flow beside it, 12 Mbit/s; 0: none
  bool queue_stands = false;        // what is reported beside every loss
  std::uint32_t not_counted = 250;  // messages at the start, while the loss is being learned
};

struct Delivery {
  std::vector<double> late_ms;  // each message in order, beyond the one-way delay; sorted
  std::uint64_t message_packets = 0, resent = 0, repairs = 0, repair_bytes = 0;
  WindowDecoder::Counters decoder;
  double share_later_than(double ms) const {
    return static_cast<double>(late_ms.end() - std::upper_bound(late_ms.begin(), late_ms.end(), ms)) /
           static_cast<double>(late_ms.size());
  }
  std::uint32_t first_repair_at = 0;  // message that was sent last before it
  double late(double share) const {
    return late_ms[static_cast<std::size_t>(share * static_cast<double>(late_ms.size() - 1))];
  }
  double repairs_per_message() const {
    return static_cast<double>(repairs) / static_cast<double>(message_packets);
  }
};

class Path {
 public:
  Path(const Loss& loss, std::uint64_t seed) : loss_(loss), random_(seed) {}
  bool loses_next() {
    const double rate = loss_.jump >= 0 && packets_++ >= loss_.jump_at ? loss_.jump : loss_.rate;
    const double dice = std::generate_canonical<double, 53>(random_);
    if (loss_.burst == 0) return dice < rate;
    if (bad_)
      bad_ = dice >= 1 / loss_.burst;
    else
      bad_ = dice < rate / (1 - rate) / loss_.burst;
    return bad_;
  }

 private:
  Loss loss_;
  std::mt19937_64 random_;
  std::uint64_t packets_ = 0;
  bool bad_ = false;
};

class Messages {
 public:
  explicit Messages(const Scenario& scenario)
      : s_(scenario),
        controller_(scenario.options),
        path_(scenario.loss, scenario.seed),
        random_(scenario.seed + 1),
        sent_(scenario.messages),
        arrived_(scenario.messages, TimePoint::max()) {}

  Delivery run() {
    at(TimePoint{}, [this] { send_next_message(); });
    if (s_.bulk_spacing > Duration{}) at(TimePoint{}, [this] { send_bulk(); });
    at(TimePoint{} + 5ms, [this] { report(); });
    while (delivered_ < s_.messages) {
      auto [when, order, what] = events_.top();
      events_.pop();
      now_ = when;
      what();
      make_repairs();
    }
    for (std::uint32_t i = 0; i < s_.messages; ++i) {
      if (i > 0) arrived_[i] = std::max(arrived_[i], arrived_[i - 1]);
      if (i >= s_.not_counted)
        result_.late_ms.push_back(
            std::chrono::duration<double, std::milli>(arrived_[i] - sent_[i] - s_.one_way).count());
    }
    std::sort(result_.late_ms.begin(), result_.late_ms.end());
    result_.decoder = decoders_[0].counters();
    return result_;
  }

 private:
  struct Event {
    TimePoint when;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(other.when, other.order) < std::tie(when, order);
    }
  };
  struct Sent {
    TimePoint when;
    bool lost;
    std::int64_t message;  // -1: none
  };

  void at(TimePoint when, std::function<void()> what) { events_.push({when, order_++, std::move(what)}); }

  // A packet's fate; the sender learns it a round trip later.
  bool send(std::int64_t message) {
    const bool lost = path_.loses_next();
    in_flight_.push_back({now_, lost, message});
    return !lost;
  }

  void send_bulk() {
    send(-1);
    controller_.on_sent(now_, std::nullopt);
    at(now_ + s_.bulk_spacing, [this] { send_bulk(); });
  }

  void send_next_message() {
    sent_[next_] = now_;
    send_message(next_++);
    if (next_ == s_.messages) return;
    Duration gap = s_.spacing;
    if (s_.jitter > Duration{})
      gap += Duration(static_cast<long>(random_() % (2 * s_.jitter.count()))) - s_.jitter;
    at(now_ + gap, [this] { send_next_message(); });
  }

  void send_message(std::uint32_t message) {
    std::vector<std::byte> payload(s_.message_bytes);
    std::memcpy(payload.data(), &message, sizeof message);
    for (std::size_t i = sizeof message; i < payload.size(); ++i)
      payload[i] = static_cast<std::byte>(message * i);
    const auto symbol = controller_.protects(Traffic::interactive, s_.mode);
    ++result_.message_packets;
    const bool arrives = send(message);
    controller_.on_sent(now_, symbol, s_.mode);
    std::optional<SymbolId> id;
    if (symbol) id = encoders_[index_of(*symbol)].add(payload);
    if (!arrives) return;
    at(now_ + s_.one_way, [this, symbol, id, payload, message] {
      has_arrived(message);
      if (!symbol) return;
      decoders_[index_of(*symbol)].on_source(*id, payload);
      take_restored(*symbol);
    });
  }

  void make_repairs() {
    while (const auto order = controller_.poll_order(now_)) {
      WindowEncoder& encoder = encoders_[index_of(order->of)];
      if (result_.repairs == 0) result_.first_repair_at = next_;
      for (const Repair& r : encoder.repair_last(order->symbols, order->repairs)) {
        ++result_.repairs;
        result_.repair_bytes += r.coded.size();
        const bool arrives = send(-1);
        controller_.on_sent(now_, std::nullopt);
        if (!arrives) continue;
        at(now_ + s_.one_way,
           [this, of = order->of, head = r, coded = std::vector(r.coded.begin(), r.coded.end())] {
             decoders_[index_of(of)].on_repair({head.window, head.key, coded});
             take_restored(of);
           });
      }
    }
    // A timer that is set already will find nothing to do.
    if (const auto timeout = controller_.next_timeout(); timeout && *timeout != timer_) {
      timer_ = *timeout;
      at(std::max(now_, *timeout), [] {});
    }
  }

  void take_restored(Class of) {
    while (const auto restored = decoders_[index_of(of)].poll_restored()) {
      std::uint32_t message;
      std::memcpy(&message, restored->payload.data(), sizeof message);
      has_arrived(message);
    }
  }

  void has_arrived(std::uint32_t message) {
    if (arrived_[message] != TimePoint::max()) return;
    arrived_[message] = now_;
    ++delivered_;
  }

  // Every 5 ms the sender hears of what was sent a round trip ago: delivered, or lost as three later packets
  // came or an eighth of a round trip has passed.
  void report() {
    at(now_ + 5ms, [this] { report(); });
    LossReport report;
    report.queue_stood = s_.queue_stands;
    std::vector<std::uint32_t> again;
    const Duration round_trip = 2 * s_.one_way;
    while (!in_flight_.empty() && in_flight_.front().when + round_trip <= now_) {
      const Sent& front = in_flight_.front();
      if (front.lost) {
        const bool behind = in_flight_.size() > 3 && in_flight_[3].when + round_trip <= now_;
        if (!behind && front.when + round_trip * 9 / 8 > now_) break;
        ++report.lost;
        if (!last_lost_) ++report.bursts;
        if (front.message >= 0 && arrived_[static_cast<std::size_t>(front.message)] > now_ - s_.one_way)
          again.push_back(static_cast<std::uint32_t>(front.message));
      } else {
        ++report.delivered;
      }
      last_lost_ = front.lost;
      in_flight_.pop_front();
    }
    controller_.on_report(now_, report, round_trip);
    for (const std::uint32_t message : again) {
      ++result_.resent;
      --result_.message_packets;
      send_message(message);
    }
  }

  Scenario s_;
  Controller controller_;
  Path path_;
  std::mt19937_64 random_;
  std::array<WindowEncoder, kClasses> encoders_;
  std::array<WindowDecoder, kClasses> decoders_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  TimePoint now_{};
  TimePoint timer_{};
  std::deque<Sent> in_flight_;
  bool last_lost_ = false;
  std::uint32_t next_ = 0, delivered_ = 0;
  std::vector<TimePoint> sent_, arrived_;
  Delivery result_;
};

inline Delivery deliver(const Scenario& scenario) { return Messages(scenario).run(); }

}  // namespace longhaul::fec::test
