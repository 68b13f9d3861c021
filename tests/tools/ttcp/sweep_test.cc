// SPDX-License-Identifier: Apache-2.0
// Both ends of sweeps in one process, over loopback. What packets cost is not looked at: the host is busy.
#include "tools/ttcp/sweep.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tools/ttcp/send.h"
#include "tools/ttcp/serve.h"

using namespace longhaul::ttcp;
using namespace std::chrono_literals;
namespace measuring = longhaul::measuring;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kLong = 60s;  // what never takes long in a sound program, even on a busy host

// A receiver for one controller, in a thread.
class Receiver {
 public:
  explicit Receiver(const std::string& host = "127.0.0.1", const std::string& token = "")
      : listener_(listen_tcp(listening_address(host, 0, Protocol::tcp, Family::any), {})),
        thread_([this, token] {
          try {
            Channel control{accept_one(listener_.get(), Clock::now() + kLong, stop_)};
            control.greet(measuring::Side::listens, token, Clock::now() + kLong, stop_);
            serve_controller(control, {}, stop_);
            said_ = "done";
          } catch (const std::exception& error) {
            said_ = error.what();
          } catch (const Interrupted&) {
            said_ = "interrupted";
          }
        }) {}
  ~Receiver() {
    stop_.request();
    if (thread_.joinable()) thread_.join();
  }
  std::uint16_t port() const { return Address::local_of(listener_.get()).port(); }
  std::string said() {
    thread_.join();
    return said_;
  }

 private:
  Stop stop_;
  longhaul::wan::Descriptor listener_;
  std::string said_;
  std::thread thread_;
};

SweepOptions options_for(const Receiver& receiver, const std::string& host = "127.0.0.1") {
  SweepOptions options;
  options.host = host;
  options.control_port = receiver.port();
  options.pause = 20ms;
  options.gap = 0ms;
  return options;
}

Report sweep(const PlanOptions& plan, const SweepOptions& options) {
  Stop stop;
  Report report;
  run_sweep(make_plan(plan), options, report, stop, [](const Report&) {});
  return report;
}

}  // namespace

TEST_CASE("a sweep of every kind accounts for every byte") {
  Receiver receiver;
  const Report report = sweep({.sizes = {16, 1000, 9000},
                               .kinds = {Kind::tcp, Kind::udp, Kind::udp_padded, Kind::udp_padded_setup},
                               .trials = 2,
                               .bytes = 64 * 1024},
                              options_for(receiver));
  REQUIRE(report.rows.size() == 3 * 4 * 2);
  for (const Row& row : report.rows) {
    CHECK(row.packets_sent == row.test.packets);
    CHECK(row.packets_received <= row.packets_sent);
    CHECK(row.bytes_received <= row.bytes_sent());
    CHECK((row.setup_seconds > 0) == (!is_udp(row.test.kind) || has_setup(row.test.kind)));
    if (!is_udp(row.test.kind)) CHECK(row.bytes_received == row.bytes_sent());
    if (!is_udp(row.test.kind)) CHECK(row.ended_by == "close");
  }
  CHECK(receiver.said() == "done");
}

TEST_CASE("a minimum time makes a test send more packets, a maximum time fewer") {
  Receiver receiver;
  SweepOptions options = options_for(receiver);
  options.least_seconds = 0.05;
  options.udp_rate = 8e6;  // 1 ms for each packet of 1000 bytes
  for (const Row& row : sweep({.sizes = {1000}, .trials = 1, .packets = 2}, options).rows) {
    CHECK(row.packets_sent > 2);
    CHECK(row.send_seconds >= 0.05);
  }
  Receiver other;
  options = options_for(other);
  options.most_seconds = 0.05;
  options.udp_rate = 8e6;
  for (const Row& row :
       sweep({.sizes = {1000}, .kinds = {Kind::udp}, .trials = 1, .packets = 1'000'000}, options).rows)
    CHECK(row.packets_sent < 1'000'000);
}

TEST_CASE("another token is refused, and both ends print a sentence") {
  Receiver receiver{"127.0.0.1", "secret"};
  SweepOptions options = options_for(receiver);
  CHECK_THROWS_WITH(sweep({}, options), Catch::Contains("token"));
  CHECK_THAT(receiver.said(), Catch::Contains("token"));
  Receiver same{"127.0.0.1", "secret"};
  options = options_for(same);
  options.token = "secret";
  CHECK(sweep({.sizes = {100}, .kinds = {Kind::tcp}, .trials = 1, .packets = 3}, options).rows.size() == 1);
}

TEST_CASE("an interrupted sweep keeps its rows, and the receiver is informed") {
  Receiver receiver;
  Stop stop;
  Report report;
  CHECK_THROWS_AS(run_sweep(make_plan({.packets = 10}), options_for(receiver), report, stop,
                            [&](const Report& so_far) {
                              if (so_far.rows.size() == 2) stop.request();
                            }),
                  Interrupted);
  CHECK(report.rows.size() == 2);
  CHECK(report.planned == 135);
  // A late host has an answer under way to a peer that has left, and learns that instead.
  const std::string said = receiver.said();
  INFO(said);
  CHECK((said == "the other side closed the control connection" ||
         said.starts_with("the control connection failed")));
}

TEST_CASE("a controller that disappears during a test ends it") {
  for (const bool is_udp : {true, false}) {
    Receiver receiver;
    Stop stop;
    {
      Channel control{
          connect_tcp(resolve("127.0.0.1", receiver.port(), Protocol::tcp, Family::any), {}, kLong, stop)};
      control.greet(measuring::Side::dials, "", Clock::now() + kLong, stop);
      control.send(to_message(Announcement{.test = 1, .is_udp = is_udp, .payload_bytes = 100}), stop);
      const auto ready = control.receive(Clock::now() + kLong, stop);
      REQUIRE(ready.has_value());
      CHECK(say_of(*ready) == "ready");
    }
    CHECK(receiver.said() == "the other side closed the control connection");
  }
}

TEST_CASE("a controller that disappears while its last data is under way ends the test") {
  Receiver receiver;
  Stop stop;
  longhaul::wan::Descriptor data;
  {
    Channel control{
        connect_tcp(resolve("127.0.0.1", receiver.port(), Protocol::tcp, Family::any), {}, kLong, stop)};
    control.greet(measuring::Side::dials, "", Clock::now() + kLong, stop);
    const Announcement announcement{.test = 1, .payload_bytes = 100, .pass = measuring::Pass::draw()};
    control.send(to_message(announcement), stop);
    const auto ready = control.receive(Clock::now() + kLong, stop);
    REQUIRE(ready.has_value());
    const auto port = static_cast<std::uint16_t>(measuring::number(*ready, "port", 1, 65535));
    data = connect_tcp({control.peer().with_port(port)}, {}, kLong, stop);
    send_all(data.get(), announcement.pass.bytes(), stop);
    control.send({{"say", "sent"}, {"packets", 10}}, stop);
  }
  CHECK(receiver.said() == "the other side closed the control connection");
}

TEST_CASE("an invalid announcement ends the sweep with a sentence") {
  Receiver receiver;
  Stop stop;
  Channel control{
      connect_tcp(resolve("127.0.0.1", receiver.port(), Protocol::tcp, Family::any), {}, kLong, stop)};
  control.greet(measuring::Side::dials, "", Clock::now() + kLong, stop);
  control.send(to_message(Announcement{.test = 1, .is_udp = true, .payload_bytes = 5}), stop);
  CHECK_THAT(receiver.said(), Catch::Contains("payload_bytes"));
}

TEST_CASE("a peer that speaks another protocol is reported") {
  Stop stop;
  const auto listener = listen_tcp(listening_address("127.0.0.1", 0, Protocol::tcp, Family::any), {});
  std::thread web{[&] {
    const auto socket = accept_one(listener.get(), Clock::now() + kLong, stop);
    const std::string_view text = "HTTP/1.1 400 Bad Request\r\n\r\n";
    send_all(socket.get(), {reinterpret_cast<const std::byte*>(text.data()), text.size()}, stop);
    wait_readable(socket.get(), Clock::now() + kLong,
                  stop);  // so that the answer is not overtaken by a reset
  }};
  SweepOptions options;
  options.host = "127.0.0.1";
  options.control_port = Address::local_of(listener.get()).port();
  CHECK_THROWS_WITH(sweep({}, options), Catch::Contains("not of longhaul-ttcp's protocol"));
  web.join();
}

TEST_CASE("a closed port, a port in use and an unknown host have different error sentences") {
  Stop stop;
  const auto listener = listen_tcp(listening_address("127.0.0.1", 0, Protocol::tcp, Family::any), {});
  const Address taken = Address::local_of(listener.get());
  CHECK_THROWS_WITH(listen_tcp(taken, {}), Catch::Contains("is in use"));
  // Bound and not listening: no other program can take it meanwhile.
  const longhaul::wan::Descriptor silent{::socket(AF_INET, SOCK_STREAM, 0)};
  const Address any = taken.with_port(0);
  REQUIRE(::bind(silent.get(), any.get(), any.length()) == 0);
  CHECK_THROWS_WITH(connect_tcp({Address::local_of(silent.get())}, {}, kLong, stop),
                    Catch::Contains("nothing listens"));
  CHECK_THROWS_WITH(resolve("no such host", 1, Protocol::tcp, Family::any),
                    Catch::Contains("cannot find the host"));
}
