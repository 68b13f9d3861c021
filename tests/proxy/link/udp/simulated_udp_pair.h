// SPDX-License-Identifier: Apache-2.0
// Two sessions over two UDP carriers over the virtual network: the whole link but for sockets. A seed repeats
// a run exactly. What flows on it is the test's (simulated_flow.h).
#pragma once
#include <numeric>

#include "../simulated_pair.h"
#include "proxy/link/udp/udp_carrier.h"
#include "tests/simulator/network.h"

namespace longhaul::link::simulation {

inline udp::CarrierKeys test_keys() {
  Buffer exported(udp::kExportedBytes);
  for (std::size_t i = 0; i < exported.size(); ++i) exported[i] = std::byte(i * 7 + 1);
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
};

// One proxy: a session, its carrier, and what its flows see.
class UdpEnd final : public simulator::Endpoint {
 public:
  UdpEnd(Side side, const UdpPairOptions& options, udp::UdpAddress peer, TimePoint now)
      : pool(options.credit_bytes, options.max_streams),
        retained(options.retained_bytes),
        session({.side = side, .max_peer_streams = options.max_streams}, pool, retained, nullptr, now),
        carrier({.side = side,
                 .keys = test_keys(),
                 .peer = peer,
                 .rate_bits = options.rate_bits,
                 .path = options.path,
                 .new_carrier = [this] { return ++last_carrier_; }},
                session, now) {
    carrier.set_fec(options.features);
  }

  static udp::UdpAddress to_asio(simulator::Address address) {
    return {boost::asio::ip::address_v4(address.host), address.port};
  }
  static simulator::Address from_asio(const udp::UdpAddress& address) {
    return {address.address().to_v4().to_uint(), address.port()};
  }

  void receive(simulator::Datagram& datagram, TimePoint now) override {
    if (auto taken = carrier.receive(datagram.payload, to_asio(datagram.from), now); !taken && !error)
      error = taken.error();
    after(now);
  }
  void transmit(simulator::Outbox& out, TimePoint now) override {
    after(now);
    while (carrier.transmit(batch_, now)) {
      for (std::size_t at = 0; at < batch_.bytes.size(); at += batch_.segment_bytes) {
        std::size_t size = std::min(batch_.segment_bytes, batch_.bytes.size() - at);
        out.send(from_asio(batch_.to), Bytes(batch_.bytes).subspan(at, size),
                 static_cast<std::uint32_t>(size + 28));
      }
      after(now);
    }
  }
  std::optional<TimePoint> next_timeout() const override {
    auto next = carrier.next_timeout();
    auto mine = session.next_timeout();
    return next && mine ? std::min(next, mine) : next ? next : mine;
  }
  void on_timeout(TimePoint now) override {
    session.on_timeout(now);
    carrier.on_timeout(now);
    after(now);
  }

  CreditPool pool;
  RetainedBudget retained;
  Session session;

 private:
  CarrierId last_carrier_ = 0;
  udp::DatagramBatch batch_;

 public:
  udp::UdpCarrier carrier;
  std::vector<Event> events;
  std::function<void(const Event&)> on_event;
  boost::system::error_code error;
  bool prefers_udp = true;

 private:
  void after(TimePoint now) {
    if (prefers_udp && carrier.state() == udp::UdpCarrier::State::up) carrier.prefer(now);
    while (auto event = session.poll_event()) {
      events.push_back(*event);
      if (on_event) on_event(*event);
    }
  }
};

// Has what FlowsOnPair asks of a pair.
class UdpPair {
 public:
  static constexpr simulator::Address kA{0x0a000001, 1000}, kB{0x0a000002, 7600};

  explicit UdpPair(const UdpPairOptions& options)
      : network_(options.seed),
        line(network_.add_line(options.line)),
        a(Side::dialler, options, UdpEnd::to_asio(kB), network_.now()),
        b(Side::acceptor, options, {}, network_.now()),
        node_a(network_.attach(a, line, simulator::LineEnd::a, kA)),
        node_b(network_.attach(b, line, simulator::LineEnd::b, kB)) {
    node_a.wake();
    node_b.wake();
  }

  TimePoint now() const { return network_.now(); }
  simulator::Network& network() { return network_; }

  // Answers whether `done` became true in time; looks every millisecond.
  bool run_until(const std::function<bool()>& done, Duration time) {
    TimePoint end = now() + time;
    while (now() < end) {
      if (done()) return true;
      wake();
      network_.run_until(std::min<TimePoint>(end, now() + 1ms));
    }
    return done();
  }
  void run_for(Duration time) {
    wake();
    network_.run_until(now() + time);
  }
  // The application did something.
  void wake() {
    node_a.wake();
    node_b.wake();
  }

 private:
  simulator::Network network_;

 public:
  simulator::Line& line;
  UdpEnd a, b;
  simulator::Node &node_a, &node_b;
};

}  // namespace longhaul::link::simulation
