// SPDX-License-Identifier: Apache-2.0
// Two sessions with a control connection of memory and real UDP sockets on loopback between them.
#include "proxy/link/io/udp_paths.h"

#include "../simulated_flow.h"
#include "proxy/loopback.h"

namespace longhaul::link::udp {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using config::Transport;

constexpr CarrierId kTcp{1};

CarrierKeys keys_of(int epoch) {
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
    a.begin(*a.paths.dialling_endpoint({}, {}, false), epoch, {asio::ip::make_address("127.0.0.1"), relay->port()});
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

// Whose flows go over UDP already; the limits are of a's keys.
struct PairOnUdp : Pair {
  explicit PairOnUdp(PacketLimits limits = {}) {
    a.limits = limits;
    new_keys(1);
    REQUIRE(both_on_udp());
  }
  void complete() {
    REQUIRE(until([&] { return flows.all_complete(); }));
    CHECK(flows.all_right());
  }
  simulation::FlowsOn<Pair> flows{*this};
};

LinkStatus status_of(const End& end) {
  LinkStatus status;
  end.paths.fill(status);
  return status;
}

TEST_CASE("flows use UDP as soon as it answers") {
  PairOnUdp pair;
  pair.flows.start(3'000'000, 2'000'000);
  const std::uint64_t before = pair.a.tcp_bytes + pair.b.tcp_bytes;
  pair.complete();
  // A PING may still go.
  CHECK(pair.a.tcp_bytes + pair.b.tcp_bytes < before + 100);
  CHECK(status_of(pair.a).udp.state == UdpState::up);
  CHECK(status_of(pair.a).udp.bytes_sent > 3'000'000);
  CHECK(status_of(pair.b).udp.remote_address == "127.0.0.1:" + std::to_string(pair.relay->port()));
}

TEST_CASE("flows stay on the control connection if UDP does not answer") {
  Pair pair;
  pair.relay->closed = true;
  pair.new_keys(1);
  simulation::FlowsOn flows(pair);
  flows.start(1'000'000, 1'000'000);
  REQUIRE(pair.until([&] { return flows.all_complete(); }));
  CHECK(flows.all_right());
  CHECK_FALSE(pair.a.paths.carrying());
  CHECK(pair.until([&] { return status_of(pair.a).udp.state == UdpState::failed; }));
  CHECK(status_of(pair.a).udp.fallbacks == 0);
}

TEST_CASE("if UDP falls silent its bytes are sent again elsewhere, and UDP is used again when it answers") {
  PairOnUdp pair;
  pair.flows.start(20'000'000, 20'000'000);
  REQUIRE(pair.until([&] { return status_of(pair.a).udp.bytes_sent > 500'000; }));
  pair.relay->closed = true;
  REQUIRE(pair.until([&] { return !pair.a.paths.carrying() && !pair.b.paths.carrying(); }));
  CHECK(pair.a.session.preferred() == kTcp);
  pair.complete();
  CHECK(status_of(pair.a).udp.fallbacks == 1);
  pair.relay->closed = false;
  pair.a.paths.probe_now(Clock::now());
  CHECK(pair.both_on_udp());
}

TEST_CASE("while neither UDP nor TCP delivers, the link stays on UDP, and TCP's answers change that") {
  PairOnUdp pair;
  pair.flows.start(20'000'000, 20'000'000);
  REQUIRE(pair.until([&] { return status_of(pair.a).udp.bytes_sent > 500'000; }));
  pair.a.tcp_stands = pair.b.tcp_stands = true;
  pair.relay->closed = true;
  // Far beyond what UDP has alone.
  CHECK_FALSE(pair.until([&] { return !pair.a.paths.carrying() || !pair.b.paths.carrying(); }, 2500ms));
  SECTION("UDP is the first to deliver again") {
    pair.relay->closed = false;
    pair.complete();
    CHECK(status_of(pair.a).udp.fallbacks == 0);
  }
  SECTION("TCP is the first to deliver again") {
    pair.a.tcp_stands = pair.b.tcp_stands = false;
    pair.a.ask_again();
    pair.b.ask_again();
    REQUIRE(pair.until([&] { return !pair.a.paths.carrying() && !pair.b.paths.carrying(); }));
    pair.complete();
  }
}

TEST_CASE("new keys take over during a flow without a fallback, and old ones end") {
  PairOnUdp pair;
  auto& flows = pair.flows;
  flows.start(4'000'000, 4'000'000);
  for (int epoch = 2; epoch <= 8; ++epoch) {
    const auto sent = status_of(pair.a).udp.bytes_sent;
    REQUIRE(pair.until(
        [&] { return flows.all_complete() || status_of(pair.a).udp.bytes_sent > sent + 500'000; }));
    pair.new_keys(epoch);
    pair.kick();
    CHECK(pair.a.paths.carrying());
  }
  pair.complete();
  CHECK(status_of(pair.a).udp.fallbacks == 0);
  CHECK(status_of(pair.b).udp.fallbacks == 0);
}

TEST_CASE("exhausted keys end the control connection once, and the keys of the next one continue") {
  const bool own = GENERATE(true, false);
  INFO((own ? "nothing more may be sealed" : "too much did not open"));
  // Fewer than what goes at once while nothing is known of the line.
  PairOnUdp pair(own ? PacketLimits{.numbers = 200} : PacketLimits{.failed_opens = 20});
  pair.flows.start(4'000'000, 4'000'000);
  pair.relay->damages = !own;
  REQUIRE(pair.until([&] { return !pair.a.closed.empty(); }));
  CHECK_FALSE(pair.a.paths.carrying());
  pair.relay->damages = false;
  const auto sent = status_of(pair.a).udp.packets_sent;
  pair.a.limits = {};
  pair.new_keys(2);
  REQUIRE(pair.both_on_udp());
  pair.complete();
  CHECK(status_of(pair.a).udp.packets_sent > sent);
  CHECK(pair.a.closed == std::vector{kTcp});
  CHECK(pair.b.closed.empty());
}

TEST_CASE("a change of the configured transport applies while flows run") {
  PairOnUdp pair;
  auto& flows = pair.flows;
  flows.start(4'000'000, 4'000'000);
  for (Transport wish : {Transport::tcp, Transport::udp, Transport::tcp, Transport::automatic}) {
    pair.a.transport = pair.b.transport = wish;
    pair.kick();
    CHECK(pair.a.paths.carrying() == (wish != Transport::tcp));
    REQUIRE(pair.until([&, sent = pair.a.tcp_bytes, udp = status_of(pair.a).udp.bytes_sent] {
      return flows.all_complete() ||
             (wish == Transport::tcp ? pair.a.tcp_bytes > sent + 300'000
                                     : status_of(pair.a).udp.bytes_sent > udp + 300'000);
    }));
  }
  pair.complete();
  CHECK(status_of(pair.a).udp.fallbacks == 0);

  // Loopback is a short line, which TCP fills for less if nobody said its rate.
  for (End* end : {&pair.a, &pair.b}) end->rate_bits = 0;
  pair.kick();
  CHECK_FALSE(pair.a.paths.carrying());
  pair.a.transport = pair.b.transport = Transport::udp;
  pair.kick();
  CHECK(pair.a.paths.carrying());
  for (End* end : {&pair.a, &pair.b}) end->rate_bits = kRate;

  // The one that is wished and not there is no reason to stop.
  pair.a.transport = pair.b.transport = Transport::tcp;
  pair.kick();
  for (End* end : {&pair.a, &pair.b}) {
    end->tcp_gone = true;
    end->session.detach(kTcp, Clock::now());
  }
  pair.kick();
  CHECK(pair.a.paths.carrying());
  flows.start(500'000, 500'000);
  pair.complete();
}

TEST_CASE("the doubt after the control connection ended is only cleared by an answer to a newer packet") {
  PairOnUdp pair;
  CHECK_FALSE(pair.a.paths.in_doubt());
  pair.relay->holds = true;
  REQUIRE(pair.until([&] { return !pair.relay->held.empty(); }));  // a ping, at the latest
  pair.a.tcp_gone = true;
  pair.a.session.detach(kTcp, Clock::now());
  pair.a.after_activity();
  CHECK(pair.a.paths.in_doubt());

  // What the peer sent before comes now.
  pair.relay->holds = false;
  pair.relay->closed = true;
  const auto received = status_of(pair.a).udp.packets_received;
  pair.relay->deliver_held();
  REQUIRE(pair.until([&] { return status_of(pair.a).udp.packets_received > received; }));
  // On a machine that stood still meanwhile the path has been given up, and nothing is carried at all.
  CHECK((pair.a.paths.in_doubt() || !pair.a.paths.carrying()));

  pair.relay->closed = false;
  if (!pair.a.paths.carrying()) pair.a.paths.probe_now(Clock::now());
  CHECK(pair.until([&] { return pair.a.paths.carrying() && !pair.a.paths.in_doubt(); }));
}

TEST_CASE("a path known to an earlier daemon starts at its rate, and stays known if nothing was sent") {
  Pair pair;
  for (End* end : {&pair.a, &pair.b}) {
    end->rate_bits = 0;
    end->transport = Transport::udp;
  }
  CHECK_FALSE(pair.a.paths.memory());
  pair.a.paths.recall({.rate = kRate / 8, .min_rtt = 1ms});
  for (int epoch = 1; epoch <= 3; ++epoch) {
    pair.new_keys(epoch);
    REQUIRE(pair.both_on_udp());
    CHECK(status_of(pair.a).udp.pacing_rate_bits > kRate * 9 / 10);
    CHECK(status_of(pair.a).udp.pacing_rate_bits < kRate * 11 / 10);
    REQUIRE(pair.a.paths.memory());
    CHECK(pair.a.paths.memory()->rate == kRate / 8);
  }
  pair.a.paths.end();
  CHECK(pair.a.paths.memory()->rate == kRate / 8);
}

// The same with two lines, each through a middle box of its own.
struct PairOnLines : Pair {
  explicit PairOnLines(config::PathPolicy policy) : second(io, listening->port()) {
    for (End* end : {&a, &b}) {
      end->policy = policy;
      end->lines = {{.name = "first", .rate_bits = kRate / 2}, {.name = "second", .rate_bits = kRate / 2}};
      end->paths.begin(end->session);
    }
    add("first", 1, *relay);
    add("second", 2, second);
    REQUIRE(until([&] { return works(a) && works(b); }));
  }
  static bool works(const End& end) { return end.paths.works("first") && end.paths.works("second"); }
  void add(const std::string& line, int keys, const Relay& through) {
    const auto config = [&](End& end, const UdpAddress& peer) {
      return UdpCarrierConfig{.side = end.side,
                              .keys = keys_of(keys),
                              .peer = peer,
                              .new_carrier = [&end] { return ++end.last; }};
    };
    a.paths.add(line, *a.paths.dialling_endpoint(line, {}, false),
                config(a, {asio::ip::make_address("127.0.0.1"), through.port()}));
    b.paths.add(line, *listening, config(b, {}));
  }
  Relay second;
  simulation::FlowsOn<Pair> flows{*this};
};

TEST_CASE("of several lines the session uses the first, and the next when that is not answered") {
  PairOnLines pair(config::PathPolicy::failover);
  REQUIRE(pair.until([&] { return status_of(pair.a).paths.size() == 2; }));
  pair.flows.start(2'000'000, 2'000'000);
  REQUIRE(pair.until([&] { return status_of(pair.a).paths[0].udp.bytes_sent > 500'000; }));
  CHECK(status_of(pair.a).paths[0].role == PathRole::carries);
  CHECK(status_of(pair.a).paths[1].role == PathRole::standby);
  CHECK(status_of(pair.a).paths[1].udp.bytes_sent < 100'000);
  pair.relay->closed = true;
  REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
  CHECK(pair.flows.all_right());
  const LinkStatus status = status_of(pair.a);
  CHECK(status.paths[0].role == PathRole::none);
  CHECK(status.paths[1].role == PathRole::carries);
  CHECK(std::string(status.paths[1].reason) == "no other path works");
  CHECK(pair.a.session.preferred() != kTcp);
  CHECK(status.udp.fallbacks == 0);
  pair.relay->closed = false;
  CHECK(pair.until([&] { return status_of(pair.a).paths[0].role == PathRole::carries; }));
}

TEST_CASE("with policy sum, bulk streams use all lines of the lowest cost") {
  PairOnLines pair(config::PathPolicy::sum);
  pair.flows.start(6'000'000, 0);
  REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
  CHECK(pair.flows.all_right());
  for (const PathStatus& path : status_of(pair.a).paths) CHECK(path.udp.bytes_sent > 1'000'000);
  pair.a.lines[1].cost = 2;
  pair.flows.start(1'000'000, 0);
  const std::uint64_t before = status_of(pair.a).paths[1].udp.bytes_sent;
  REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
  CHECK(status_of(pair.a).paths[1].udp.bytes_sent < before + 50'000);
}

TEST_CASE("with all lines blocked the session goes on over TCP") {
  PairOnLines pair(config::PathPolicy::sum);
  pair.flows.start(3'000'000, 0);
  pair.until([&] { return status_of(pair.a).udp.bytes_sent > 500'000; });
  pair.relay->closed = pair.second.closed = true;
  REQUIRE(pair.until([&] { return pair.flows.all_complete(); }));
  CHECK(pair.flows.all_right());
  CHECK(pair.a.session.preferred() == kTcp);
}

}  // namespace
}  // namespace longhaul::link::udp
