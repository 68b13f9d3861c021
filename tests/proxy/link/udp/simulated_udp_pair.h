// SPDX-License-Identifier: Apache-2.0
// Two sessions over two UDP carriers over the virtual network: the whole link but for sockets, and what
// PeerLink would do: prefer a carrier that is up, probe again after one failed. A seed repeats a run exactly.
// What flows on it is the test's (simulated_flow.h).
#pragma once
#include <random>

#include "../simulated_pair.h"
#include "proxy/link/stall.h"
#include "proxy/link/udp/carrier_contest.h"
#include "proxy/link/udp/udp_carrier.h"
#include "tests/simulator/network.h"

namespace longhaul::link::simulation {

inline udp::CarrierKeys keys_from_seed(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Buffer exported(udp::kExportedBytes);
  for (std::byte& b : exported) b = std::byte(random() & 0xff);
  return udp::keys_from_exporter(exported);
}

struct UdpPairOptions {
  std::uint64_t seed = 1;
  simulator::LineConfig line{};
  std::uint64_t rate_bits = 0;  // told to both; 0: measured
  std::optional<udp::PathMemory> path{};
  std::uint64_t credit_bytes = 256 << 20;
  std::uint64_t retained_bytes = 256 << 20;
  std::uint32_t max_streams = 4096;
  config::Features features{};
  udp::Cipher cipher = udp::Cipher::aes_128_gcm;
  udp::PacketLimits limits{};  // of the keys of both
  Duration retry_after = 1s;   // a carrier failed
  Duration timer_slack{0};     // how late deadlines are met
  std::uint32_t host = 1;      // of a; b is the next one. Of several pairs on one line, each has its own
};

// One proxy: a session, its carrier, and what its flows see.
class UdpEnd final : public simulator::Endpoint {
 public:
  UdpEnd(Side side, const UdpPairOptions& options, UdpAddress peer, TimePoint now)
      : pool(options.credit_bytes, options.max_streams),
        retained(options.retained_bytes),
        session({.side = side, .max_peer_streams = options.max_streams}, pool, retained, nullptr, now),
        retry_after_(options.retry_after),
        carrier({.side = side,
                 .keys = keys_from_seed(options.seed * 1000 + options.host),
                 .cipher = options.cipher,
                 .peer = peer,
                 .settings = {.rate_bits = options.rate_bits, .fec = options.features.fec},
                 .path = options.path,
                 .limits = options.limits,
                 .new_carrier = [this] { return ++last_carrier_; }},
                session, now) {}

  static UdpAddress to_asio(simulator::Address address) {
    return {boost::asio::ip::address_v4(address.host), address.port};
  }
  static simulator::Address from_asio(const UdpAddress& address) {
    return {address.address().to_v4().to_uint(), address.port()};
  }

  void receive(simulator::Datagram& datagram, TimePoint now) override {
    if (auto taken = carrier.receive(datagram.payload, to_asio(datagram.from), now, datagram.arrived);
        !taken && !error)
      error = taken.error();
    take_events();
  }
  void transmit(simulator::Outbox& out, TimePoint now) override {
    manage(now);
    take_events();
    while (carrier.transmit(batch_, now)) {
      for (std::size_t at = 0; at < batch_.bytes.size(); at += batch_.segment_bytes) {
        std::size_t size = std::min(batch_.segment_bytes, batch_.bytes.size() - at);
        // 20 bytes of IP, 8 of UDP.
        out.send(from_asio(batch_.to), Bytes(batch_.bytes).subspan(at, size),
                 static_cast<std::uint32_t>(size + 28));
      }
      take_events();
    }
  }
  std::optional<TimePoint> next_timeout() const override {
    std::optional<TimePoint> next = carrier.next_timeout();
    for (auto at : {session.next_timeout(), retry_at_})
      if (at && (!next || *at < *next)) next = at;
    return next;
  }
  void on_timeout(TimePoint now) override {
    session.on_timeout(now);
    carrier.on_timeout(now);
  }
  // As the drivers do.
  void on_stall(Duration late, TimePoint now) override {
    if (late <= kStall) return;
    session.on_stall(late, now);
    carrier.on_stall(late, now);
  }

  CreditPool pool;
  RetainedBudget retained;
  Session session;

 private:
  CarrierId last_carrier_;
  udp::DatagramBatch batch_;
  Duration retry_after_;
  std::optional<TimePoint> retry_at_{};

 public:
  udp::UdpCarrier carrier;
  std::vector<Event> events;  // but those of streams
  std::function<void(const Event&)> on_event;
  boost::system::error_code error;
  bool prefers_udp = true;
  int failures = 0;  // how often the carrier gave the path up
  // A TCP connection beside, of which only whether it answers matters here.
  struct Tcp {
    std::function<void()> ask;
    std::function<bool()> answered;
  };
  std::optional<Tcp> tcp;

 private:
  void manage(TimePoint now) {
    using State = udp::UdpCarrier::State;
    if (tcp) compare(now);
    // Once, as udp_paths.h does: each call resets the pacer's rate.
    if (prefers_udp && carrier.state() == State::up && session.preferred() != last_carrier_)
      carrier.prefer(now);
    if (carrier.state() != State::failed) {
      retry_at_.reset();
    } else if (!retry_at_) {
      retry_at_ = now + retry_after_;
      ++failures;
    } else if (*retry_at_ <= now) {
      carrier.probe(now);
      retry_at_.reset();
    }
  }
  // As udp_paths.h does.
  void compare(TimePoint now) {
    using Next = udp::CarrierContest::Next;
    carrier.set_rival(true);
    const Next next = contest_.step(carrier.in_doubt(), tcp->answered());
    if (next == Next::tcp_won) carrier.on_outdone(now);
    if (next != Next::ask_both) return;
    tcp->ask();
    carrier.probe(now);
  }
  udp::CarrierContest contest_;
  void take_events() {
    while (auto event = session.poll_event()) {
      if (event->kind != Event::Kind::stream) events.push_back(*event);
      if (on_event) on_event(*event);
      if (event->kind == Event::Kind::expired)
        while (session.end_streams(1)) {
        }
    }
  }
};

// Has what FlowsOn asks of a pair.
class UdpPair {
 public:
  // Alone on a line of its own.
  explicit UdpPair(const UdpPairOptions& options)
      : UdpPair(options, std::make_unique<simulator::Network>(options.seed)) {}
  // On a line that others use too. The options' line and seed are not used but for keys.
  UdpPair(const UdpPairOptions& options, simulator::Network& network, simulator::Line& shared)
      : network_(network),
        address_a{0x0a000000 + options.host, 1000},
        address_b{0x0a000001 + options.host, 7600},
        line(shared),
        a(Side::dialler, options, UdpEnd::to_asio(address_b), network.now()),
        b(Side::acceptor, options, {}, network.now()),
        node_a(network.attach(a, line, simulator::LineEnd::a, address_a)),
        node_b(network.attach(b, line, simulator::LineEnd::b, address_b)) {
    node_a.set_timer_slack(options.timer_slack);
    node_b.set_timer_slack(options.timer_slack);
    wake();
  }

  TimePoint now() const { return network_.now(); }
  simulator::Network& network() { return network_; }
  bool up() const { return a.session.preferred() != kNoCarrier && b.session.preferred() != kNoCarrier; }

  // Answers whether `done` became true in time; looks every millisecond.
  bool run_until(const std::function<bool()>& done, Duration time) {
    wake();
    return network_.run_until(done, time);
  }
  void run_for(Duration time) {
    wake();
    network_.run_for(time);
  }
  // The application did something.
  void wake() {
    node_a.wake();
    node_b.wake();
  }

 private:
  UdpPair(const UdpPairOptions& options, std::unique_ptr<simulator::Network> network)
      : UdpPair(options, *network, network->add_line(options.line)) {
    own_network_ = std::move(network);
  }

  std::unique_ptr<simulator::Network> own_network_;
  simulator::Network& network_;

 public:
  const simulator::Address address_a, address_b;
  simulator::Line& line;
  UdpEnd a, b;
  simulator::Node &node_a, &node_b;
};

// Both directions alike: megabits a second, the round trip, the share lost, and a queue of so many
// bandwidth-delay products.
inline simulator::LineConfig line_of(double megabits, Duration rtt, double loss = 0, double queue = 1) {
  const double bits = megabits * 1e6;
  const double queue_bytes = bits / 8 * std::chrono::duration<double>(rtt).count() * queue;
  return simulator::LineConfig::symmetric(
      {.link = {.rate_bits = static_cast<std::uint64_t>(bits),
                .queue_bytes = std::max<std::uint64_t>(64 * 1024, static_cast<std::uint64_t>(queue_bytes)),
                .delay = rtt / 2,
                .loss = loss},
       .mtu_bytes = 1500});
}

}  // namespace longhaul::link::simulation
