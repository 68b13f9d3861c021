// SPDX-License-Identifier: Apache-2.0
// Two sessions joined by simulated TCP-like carriers in virtual time: rate, delay, splits, cuts, several
// carriers at once. A seed repeats a run exactly.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <random>

#include "proxy/link/session.h"

namespace longhaul::link::simulation {

using namespace std::chrono_literals;

struct LineOptions {
  double bytes_per_second = 6.25e6;     // 50 Mbit/s
  Duration delay = 20ms;                // one way
  std::size_t max_piece = 0;            // deliver in pieces of at most so many bytes; 0: as sent
  std::size_t send_buffer = 64 * 1024;  // what a carrier takes before it says stop
  // Above zero: frames go in packets of at most so many bytes, of which some are lost, some are taken for
  // lost and arrive, and some overtake others.
  std::size_t packet = 0;
  double loss = 0;
};

struct PairOptions {
  std::uint64_t seed = 1;
  LineOptions line{};
  std::uint64_t credit_bytes = 64 << 20;
  std::uint64_t retained_bytes = 64 << 20;
  std::uint32_t max_streams = 4096;
  std::size_t chunk = 16 * 1024;
  std::array<config::Features, 2> allowed{};  // by the dialler, and by the acceptor
};

inline std::vector<std::string> names_of(const config::Features& features) {
  std::vector<std::string> names;
  for (const config::ModuleFeature& row : features.modules.table().rows()) names.emplace_back(row.name);
  return names;
}

// One direction of one carrier: bytes leave in order at the line's rate and arrive a delay later.
class Pipe {
 public:
  Pipe(const LineOptions& line, std::uint64_t seed) : line_(line), random_(seed) {}

  std::size_t room(TimePoint now) const {
    double queued =
        std::chrono::duration<double>(std::max(Duration{0}, free_at_ - now)).count() * line_.bytes_per_second;
    return queued >= static_cast<double>(line_.send_buffer)
               ? 0
               : line_.send_buffer - static_cast<std::size_t>(queued);
  }
  // When there is room again for something worth sending.
  TimePoint room_at(TimePoint now) const {
    auto half = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(static_cast<double>(line_.send_buffer) / 2 / line_.bytes_per_second));
    return std::max(now, free_at_ - half);
  }
  void send(Bytes bytes, TimePoint now) {
    while (!bytes.empty()) {
      std::size_t most = line_.max_piece ? line_.max_piece : bytes.size();
      std::size_t size = std::min(bytes.size(), line_.max_piece ? 1 + random_() % most : most);
      auto took = std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(static_cast<double>(size) / line_.bytes_per_second));
      free_at_ = std::max(now, free_at_) + took;
      pieces_.push_back(
          {free_at_ + line_.delay, Buffer(bytes.begin(), bytes.begin() + static_cast<long>(size))});
      bytes = bytes.subspan(size);
      carried_ += size;
    }
  }
  // Comes out by itself and late by up to a delay.
  void send_packet(Buffer packet, TimePoint now) {
    free_at_ = std::max(now, free_at_) + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
                                             static_cast<double>(packet.size()) / line_.bytes_per_second));
    carried_ += packet.size();
    if (chance(line_.loss)) return;
    TimePoint at = free_at_ + line_.delay;
    if (chance(0.05)) at += Duration(random_() % static_cast<std::uint64_t>(line_.delay.count()));
    auto after = std::upper_bound(pieces_.begin(), pieces_.end(), at,
                                  [](TimePoint time, const Piece& piece) { return time < piece.at; });
    pieces_.insert(after, {at, std::move(packet)});
    lost_last_ = false;
  }
  bool chance(double share) {
    lost_last_ = static_cast<double>(random_() % 1'000'000) < share * 1e6;
    return lost_last_;
  }
  bool lost_last() const { return lost_last_; }
  const LineOptions& line() const { return line_; }
  std::optional<TimePoint> next() const {
    return pieces_.empty() ? std::nullopt : std::optional(pieces_.front().at);
  }
  std::optional<Buffer> arrived(TimePoint now) {
    if (pieces_.empty() || pieces_.front().at > now) return std::nullopt;
    Buffer bytes = std::move(pieces_.front().bytes);
    pieces_.pop_front();
    return bytes;
  }
  void stall_until(TimePoint time) { free_at_ = std::max(free_at_, time); }
  std::uint64_t carried() const { return carried_; }

  // What the sender hears later of packets it sent.
  struct News {
    TimePoint at;
    PacketContent content;
    bool arrived;
  };
  std::deque<News> news;

 private:
  struct Piece {
    TimePoint at;
    Buffer bytes;
  };
  LineOptions line_;
  std::mt19937_64 random_;
  TimePoint free_at_{};
  std::deque<Piece> pieces_;
  std::uint64_t carried_ = 0;
  bool lost_last_ = false;
};

// One proxy's side: the session with its memory, and what its flows saw.
struct Endpoint {
  Endpoint(Side side, const PairOptions& options, BlockCodec* codec, TimePoint now)
      : pool(options.credit_bytes, options.max_streams),
        retained(options.retained_bytes),
        session({.side = side,
                 .max_peer_streams = options.max_streams,
                 .allowed = options.allowed[side == Side::acceptor],
                 .peer_features = names_of(options.allowed[side == Side::dialler])},
                pool, retained, codec, now) {}

  CreditPool pool;
  RetainedBudget retained;
  Session session;
  std::vector<Event> events;
  // Called for every event; flows in tests hang on it.
  std::function<void(const Event&)> on_event;
  boost::system::error_code error;
};

class Pair {
 public:
  explicit Pair(PairOptions options = {}, BlockCodec* codec_a = nullptr, BlockCodec* codec_b = nullptr)
      : options_(options),
        a(Side::dialler, options, codec_a, now_),
        b(Side::acceptor, options, codec_b, now_) {}

  // A new carrier between the two; the newest carries what is new.
  CarrierId connect() { return connect(options_.line); }
  CarrierId connect(const LineOptions& line) {
    CarrierId id = ++last_carrier_;
    carriers_.emplace(id, Carrier{Pipe(line, options_.seed * 31 + id.number()),
                                  Pipe(line, options_.seed * 37 + id.number())});
    a.session.attach(id, now_, 2 * line.delay);
    b.session.attach(id, now_, 2 * line.delay);
    return id;
  }
  // One side sends there from now on; the other decides for itself.
  void prefer(Endpoint& side, CarrierId id) { side.session.prefer(id, now_); }
  // Everything in flight on it is gone.
  void cut(CarrierId id) {
    carriers_.erase(id);
    a.session.detach(id, now_);
    b.session.detach(id, now_);
  }
  // Nothing moves on it any more, and neither side is informed.
  void freeze(CarrierId id, Duration time) {
    carriers_.at(id).to_a.stall_until(now_ + time);
    carriers_.at(id).to_b.stall_until(now_ + time);
    frozen_until_[id] = now_ + time;
  }

  void run_for(Duration time) {
    run_until([] { return false; }, time);
  }
  // Answers whether `done` became true in time.
  bool run_until(const std::function<bool()>& done, Duration time) {
    TimePoint end = now_ + time;
    for (;;) {
      settle();
      if (done()) return true;
      auto next = next_time();
      if (!next || *next > end) {
        now_ = end;
        settle();
        return done();
      }
      now_ = std::max(*next, now_ + 1us);
    }
  }

  TimePoint now() const { return now_; }
  std::uint64_t carried(CarrierId id) const {
    return carriers_.at(id).to_a.carried() + carriers_.at(id).to_b.carried();
  }

 private:
  struct Carrier {
    Pipe to_a, to_b;
  };
  PairOptions options_;
  TimePoint now_{std::chrono::hours(1)};

 public:
  Endpoint a, b;

 private:
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& [id, carrier] : carriers_) {
        if (frozen_until_.contains(id) && now_ < frozen_until_[id]) continue;
        moved |= deliver(id, carrier.to_a, a);
        moved |= deliver(id, carrier.to_b, b);
      }
      for (Endpoint* side : {&a, &b}) {
        side->session.on_timeout(now_);
        while (auto event = side->session.poll_event()) {
          side->events.push_back(*event);
          if (side->on_event) side->on_event(*event);
          if (event->kind == Event::Kind::expired)
            while (side->session.end_streams(1)) {
            }
          moved = true;
        }
      }
      for (auto& [id, carrier] : carriers_) {
        moved |= transmit(id, a, carrier.to_b);
        moved |= transmit(id, b, carrier.to_a);
      }
    }
  }
  bool deliver(CarrierId id, Pipe& pipe, Endpoint& to) {
    bool moved = false;
    while (auto bytes = pipe.arrived(now_)) {
      if (auto taken = to.session.receive(id, *bytes, now_); !taken && !to.error) to.error = taken.error();
      moved = true;
    }
    return moved;
  }
  bool transmit(CarrierId id, Endpoint& from, Pipe& pipe) {
    while (!pipe.news.empty() && pipe.news.front().at <= now_) {
      if (pipe.news.front().arrived) {
        from.session.outgoing().on_arrived(pipe.news.front().content);
      } else {
        from.session.outgoing().on_lost(id, pipe.news.front().content, now_);
      }
      pipe.news.pop_front();
    }
    std::size_t room = pipe.room(now_);
    if (room < 2048) return false;
    if (pipe.line().packet) return transmit_packets(id, from, pipe);
    Buffer out;
    from.session.outgoing().transmit(id, room, options_.chunk, out, now_);
    pipe.send(out, now_);
    return !out.empty();
  }
  bool transmit_packets(CarrierId id, Endpoint& from, Pipe& pipe) {
    bool sent = false;
    while (pipe.room(now_) >= 2048 && from.session.outgoing().wants_to_transmit(id, now_)) {
      PacketContent content;
      Buffer packet;
      from.session.outgoing().fill(id, pipe.line().packet, Outgoing::Streams::all, packet, content, now_);
      if (packet.empty()) break;
      if (packet.size() > pipe.line().packet) std::abort();
      sent = true;
      pipe.send_packet(std::move(packet), now_);
      Duration patience = 4 * pipe.line().delay;
      if (pipe.lost_last()) {
        pipe.news.push_back({now_ + patience, std::move(content), false});
      } else if (pipe.chance(0.03)) {
        pipe.news.push_back({now_ + patience, content, false});
        pipe.news.push_back({now_ + patience, std::move(content), true});
      }
    }
    return sent;
  }
  std::optional<TimePoint> next_time() const {
    std::optional<TimePoint> next;
    auto sooner = [&](std::optional<TimePoint> time) {
      if (time && (!next || *time < *next)) next = time;
    };
    for (const auto& [id, carrier] : carriers_) {
      bool frozen = frozen_until_.contains(id) && now_ < frozen_until_.at(id);
      if (frozen) sooner(frozen_until_.at(id));
      for (const Pipe* pipe : {&carrier.to_a, &carrier.to_b}) {
        if (!frozen) sooner(pipe->next());
        if (!pipe->news.empty()) sooner(pipe->news.front().at);
        const Session& from = pipe == &carrier.to_a ? b.session : a.session;
        if (from.outgoing().wants_to_transmit(id, now_)) sooner(pipe->room_at(now_) + 1us);
      }
    }
    sooner(a.session.next_timeout());
    sooner(b.session.next_timeout());
    return next;
  }

  std::map<CarrierId, Carrier> carriers_;
  std::map<CarrierId, TimePoint> frozen_until_;
  CarrierId last_carrier_;
};

}  // namespace longhaul::link::simulation
