// SPDX-License-Identifier: Apache-2.0
// Two sessions over several UDP carriers, each on a line of its own: what UdpPaths does with them, without
// sockets. What flows on it is the test's (simulated_flow.h).
#pragma once
#include "proxy/link/udp/path_sharing.h"
#include "simulated_udp_pair.h"

namespace longhaul::link::simulation {

struct PathOptions {
  simulator::LineConfig line{};
  std::uint64_t rate_bits = 0;  // told to both; 0: measured
  std::uint32_t cost = 1;
};

struct PathsOptions {
  std::uint64_t seed = 1;
  std::vector<PathOptions> paths{};
  config::PathPolicy policy = config::PathPolicy::sum;
  config::Features features{};
};

// One proxy: a session and its carriers.
class PathsEnd {
 public:
  PathsEnd(Side side, const PathsOptions& options, TimePoint now)
      : pool(256 << 20, 4096),
        retained(256 << 20),
        session({.side = side, .max_peer_streams = 4096}, pool, retained, nullptr, now),
        policy(options.policy) {}

  // A carrier at its end of its line.
  class OnLine final : public simulator::Endpoint {
   public:
    OnLine(PathsEnd& end, const udp::UdpCarrierConfig& config, TimePoint now)
        : end_(end), carrier(config, end.session, now) {}

    void receive(simulator::Datagram& datagram, TimePoint now) override {
      udp::UdpCarrier* const to = end_.carrier_of(datagram.payload);
      if (!to) return;
      if (auto taken = to->receive(datagram.payload, UdpEnd::to_asio(datagram.from), now);
          !taken && !end_.error)
        end_.error = taken.error();
      end_.after_activity(now);
    }
    void transmit(simulator::Outbox& out, TimePoint now) override {
      end_.after_activity(now);
      while (carrier.transmit(batch_, now)) {
        for (std::size_t at = 0; at < batch_.bytes.size(); at += batch_.segment_bytes) {
          const std::size_t size = std::min(batch_.segment_bytes, batch_.bytes.size() - at);
          out.send(UdpEnd::from_asio(batch_.to), Bytes(batch_.bytes).subspan(at, size),
                   static_cast<std::uint32_t>(size + 28));
        }
        end_.after_activity(now);
      }
    }
    std::optional<TimePoint> next_timeout() const override { return carrier.next_timeout(); }
    void on_timeout(TimePoint now) override {
      carrier.on_timeout(now);
      end_.after_activity(now);
    }

   private:
    PathsEnd& end_;
    udp::DatagramBatch batch_;

   public:
    udp::UdpCarrier carrier;
    std::optional<TimePoint> retry_at{}, keep_at{};
    simulator::Node* node = nullptr;
  };

  void add(const PathOptions& path, const UdpAddress& peer, udp::CarrierKeys keys,
           const config::Features& features, Side side, TimePoint now) {
    costs_.push_back(path.cost);
    lines.push_back(std::make_unique<OnLine>(
        *this,
        udp::UdpCarrierConfig{.side = side,
                              .keys = keys,
                              .peer = peer,
                              .settings = {.rate_bits = path.rate_bits, .fec = features.fec},
                              .new_carrier = [this] { return ++last_; }},
        now));
  }

  // As an endpoint finds it: by the id in the packet, on whichever line it came.
  udp::UdpCarrier* carrier_of(Bytes datagram) {
    for (auto& line : lines)
      if (const auto id = std::as_bytes(std::span(line->carrier.own_id().bytes));
          datagram.size() > id.size() && std::ranges::equal(datagram.subspan(1, id.size()), id))
        return &line->carrier;
    return nullptr;
  }

  // What the owner of the paths does whenever anything may have changed.
  void after_activity(TimePoint now) {
    using State = udp::UdpCarrier::State;
    std::vector<udp::PathSharing::Path> paths;
    for (std::size_t i = 0; i < lines.size(); ++i)
      paths.push_back({.carrier = &lines[i]->carrier, .cost = costs_[i], .order = i});
    const bool was_stranded = shares.stranded;
    shares = sharing_.choose(policy, paths, session, now);
    const bool is_other = sharing_.apply(policy, shares, paths, session, now);
    changes += is_other;
    if (shares.stranded && !was_stranded)
      for (auto& line : lines)
        if (line->carrier.state() != State::up) line->carrier.probe(now);
    for (auto& line : lines) {
      udp::UdpCarrier& carrier = line->carrier;
      if (carrier.state() != State::failed) {
        line->retry_at.reset();
      } else if (!line->retry_at) {
        line->retry_at = now + 1s;
      } else if (*line->retry_at <= now) {
        carrier.probe(now);
        line->retry_at.reset();
      }
      // A path that stands by is probed, so that it is known to work.
      if (carrier.state() == State::up && session.preferred() != carrier.id() &&
          now >= line->keep_at.value_or(now)) {
        line->keep_at = now + 1s;
        carrier.probe(now);
      }
    }
    while (auto event = session.poll_event()) {
      if (on_event) on_event(*event);
      if (event->kind == Event::Kind::expired)
        while (session.end_streams(1)) {
        }
    }
  }

  CreditPool pool;
  RetainedBudget retained;
  Session session;
  config::PathPolicy policy;
  std::vector<std::unique_ptr<OnLine>> lines;
  udp::PathShares shares;
  int changes = 0;  // of the preferred path
  std::function<void(const Event&)> on_event;
  boost::system::error_code error;

 private:
  CarrierId last_;
  std::vector<std::uint32_t> costs_;
  udp::PathSharing sharing_;
};

// Has what FlowsOn asks of a pair.
class PathsPair {
 public:
  explicit PathsPair(const PathsOptions& options)
      : network_(options.seed), a(Side::dialler, options, now()), b(Side::acceptor, options, now()) {
    for (std::uint32_t i = 0; i < options.paths.size(); ++i) {
      simulator::Line& line = network_.add_line(options.paths[i].line);
      lines.push_back(&line);
      const simulator::Address near{0x0a000001 + 2 * i, 1000}, far{0x0a000002 + 2 * i, 7600};
      const udp::CarrierKeys keys = keys_from_seed(options.seed * 1000 + i);
      a.add(options.paths[i], UdpEnd::to_asio(far), keys, options.features, Side::dialler, now());
      b.add(options.paths[i], {}, keys, options.features, Side::acceptor, now());
      a.lines.back()->node = &network_.attach(*a.lines.back(), line, simulator::LineEnd::a, near);
      b.lines.back()->node = &network_.attach(*b.lines.back(), line, simulator::LineEnd::b, far);
    }
    // As in the event loop: an end that has something to send does so soon, whichever path caused it.
    network_.every(std::chrono::milliseconds(1), [this] {
      for (PathsEnd* end : {&a, &b})
        if (const auto due = end->session.next_timeout(); due && *due <= now())
          end->session.on_timeout(now());
      wake();
    });
    wake();
  }

  TimePoint now() const { return network_.now(); }
  simulator::Network& network() { return network_; }
  bool up() const {
    const auto all = [](const PathsEnd& end) {
      return std::ranges::all_of(
          end.lines, [](const auto& line) { return line->carrier.state() == udp::UdpCarrier::State::up; });
    };
    return all(a) && all(b);
  }
  bool run_until(const std::function<bool()>& done, Duration time) {
    wake();
    return network_.run_until(done, time);
  }
  void run_for(Duration time) {
    wake();
    network_.run_for(time);
  }
  void wake() {
    for (PathsEnd* end : {&a, &b})
      for (auto& line : end->lines) line->node->wake();
  }

 private:
  simulator::Network network_;

 public:
  std::vector<simulator::Line*> lines;
  PathsEnd a, b;
};

}  // namespace longhaul::link::simulation
