// SPDX-License-Identifier: Apache-2.0
// Two sessions with a control connection of memory and real UDP sockets on loopback between them, with a
// middle box on the way. What flows over it is the test's.
#pragma once
#include "../simulated_flow.h"
#include "proxy/link/io/udp_paths.h"
#include "proxy/loopback.h"

namespace longhaul::link::udp::testing {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using config::Transport;

constexpr CarrierId kTcp{1};

inline CarrierKeys keys_of(int epoch) {
  Buffer exported(kExportedBytes);
  for (std::size_t i = 0; i < exported.size(); ++i) exported[i] = std::byte(i * 7 + 1 + epoch * 31);
  return keys_from_exporter(exported);
}

// What both ends, in one thread and under the sanitizers, keep up with.
constexpr std::uint64_t kRate = 24'000'000;

struct End final : CarrierOwner {
  End(asio::io_context& loop, Side of, std::string name)
      : io(loop),
        side(of),
        pool(256 << 20, 1024),
        retained(256 << 20),
        session({.side = of, .max_peer_streams = 1024}, pool, retained, nullptr, Clock::now()),
        paths(loop, std::move(name), static_cast<CarrierOwner&>(*this)) {
    session.attach(kTcp, Clock::now(), 1ms);
  }
  ~End() { paths.end(); }

  void after_activity() override {
    config::Features features;
    features.transport = transport;
    if (!tcp_gone && session.preferred() == kTcp) post_tcp();
    // Told the rate, so that what is tested does not wait for it to be measured.
    paths.choose({.features = features,
                  .tcp = tcp_gone ? kNoCarrier : kTcp,
                  .rate_bits = rate_bits,
                  .send_on_tcp = [this](Bytes frames) { send_on_tcp(frames); },
                  .lines = lines,
                  .policy = policy},
                 Clock::now());
    while (auto event = session.poll_event())
      if (on_event) on_event(*event);
  }
  void on_carrier_closed(CarrierId id, const std::string&, EndedBy) override { closed.push_back(id); }

  // The control connection: what the session gives it arrives at the other end.
  void post_tcp() {
    Buffer frames;
    session.outgoing().transmit(kTcp, 256 * 1024, 16 * 1024, frames, Clock::now());
    if (!frames.empty()) send_on_tcp(frames);
  }
  void ask_again() { send_on_tcp(std::exchange(standing, {})); }
  void send_on_tcp(Bytes bytes) {
    if (tcp_stands) return standing.assign(bytes.begin(), bytes.end());
    asio::post(io, [this, frames = Buffer(bytes.begin(), bytes.end())] {
      if (other->tcp_gone) return;
      tcp_bytes += frames.size();
      REQUIRE(other->session.receive(kTcp, frames, Clock::now()));
      other->after_activity();
      after_activity();
    });
  }

  void begin(UdpEndpoint& endpoint, int epoch, const UdpAddress& peer) {
    paths.begin(endpoint,
                {.side = side,
                 .keys = keys_of(epoch),
                 .peer = peer,
                 .limits = limits,
                 .new_carrier = [this] { return ++last; }},
                session);
  }

  asio::io_context& io;
  Side side;
  CreditPool pool;
  RetainedBudget retained;
  Session session;
  CarrierId last = kTcp;
  UdpPaths paths;
  End* other = nullptr;
  bool tcp_gone = false;
  bool tcp_stands = false;  // what is sent over it does not arrive yet
  Buffer standing;
  std::uint64_t tcp_bytes = 0;
  Transport transport = Transport::automatic;
  std::uint64_t rate_bits = kRate;
  std::vector<config::PeerPath> lines;
  config::PathPolicy policy = config::PathPolicy::sum;
  PacketLimits limits;
  std::vector<CarrierId> closed;
  std::function<void(const Event&)> on_event;
};

// A middle box on loopback that can stop passing datagrams on, or damage them.
struct Relay {
  Relay(asio::io_context& io, std::uint16_t to) : socket(io, {asio::ip::make_address("127.0.0.1"), 0}) {
    server = {asio::ip::make_address("127.0.0.1"), to};
    take();
  }
  void take() {
    socket.async_receive_from(
        asio::buffer(buffer), from, [this](boost::system::error_code error, std::size_t size) {
          if (error) return;
          if (from != server) client = from;
          boost::system::error_code ignored;
          if (damages && size > kPacketOverhead) buffer[size - 1] ^= std::byte{1};
          if (holds && from == server) {
            held.emplace_back(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size));
            return take();
          }
          if (!closed && (from != server || client.port()))
            socket.send_to(asio::buffer(buffer, size), from == server ? client : server, 0, ignored);
          take();
        });
  }
  void deliver_held() {
    for (const auto& datagram : std::exchange(held, {})) socket.send_to(asio::buffer(datagram), client);
  }
  std::uint16_t port() const { return socket.local_endpoint().port(); }

  asio::ip::udp::socket socket;
  UdpAddress server, client, from;
  std::array<std::byte, 65536> buffer;
  bool closed = false;
  bool damages = false;
  bool holds = false;  // what the server sends
  std::vector<std::vector<std::byte>> held;
};

struct Pair {
  Pair() {
    a.other = &b;
    b.other = &a;
    auto opened =
        UdpEndpoint::open(io, {asio::ip::make_address("::"), 0}, UdpEndpoint::Answers::from_address_used);
    REQUIRE(opened);
    listening = std::move(*opened);
    relay = std::make_unique<Relay>(io, listening->port());
  }
  // New keys on both sides, as with a new control connection.
  void new_keys(int epoch) {
    a.begin(*a.paths.dialling_endpoint({}, {}, false), epoch,
            {asio::ip::make_address("127.0.0.1"), relay->port()});
    b.begin(*listening, epoch, {});
  }
  TimePoint now() const { return Clock::now(); }
  void kick() {
    for (End* end : {&a, &b}) {
      end->session.on_timeout(Clock::now());
      end->after_activity();
      end->paths.kick();
    }
  }
  // Whether it became true in time.
  template <class Condition>
  bool until(Condition condition, Duration limit = 20s) {
    const TimePoint end = Clock::now() + limit;
    while (!condition()) {
      if (Clock::now() > end) return false;
      kick();
      io.restart();
      io.run_for(1ms);
    }
    return true;
  }
  bool both_on_udp() {
    return until([&] { return a.paths.carrying() && b.paths.carrying(); });
  }

  asio::io_context io;
  std::unique_ptr<UdpEndpoint> listening;
  std::unique_ptr<Relay> relay;
  End a{io, Side::dialler, "b"}, b{io, Side::acceptor, "a"};
};

inline LinkStatus status_of(const End& end) {
  LinkStatus status;
  end.paths.fill(status);
  return status;
}

}  // namespace longhaul::link::udp::testing
