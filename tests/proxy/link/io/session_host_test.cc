// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/session_host.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::link;

namespace {

// A session without carriers and its flows.
struct Hosted final : SessionHost::Owner {
  void after_activity() override { ++activities; }
  void kick() override {}
  void on_opened(Stream&) override {}
  void on_session_event(const Event& event) override { events.push_back(event.kind); }
  void on_failure(const std::string&) override {}
  bool keeps_streams() const override { return keeps; }

  void begin() { host.begin({}, pool, retained, nullptr, Token{}); }
  Stream& open() { return host.session()->open({.destination = {.host = "server", .port = 80}}, Clock::now()); }

  boost::asio::io_context io;
  CreditPool pool{64 << 20, 1024};
  RetainedBudget retained{64 << 20};
  int activities = 0;
  bool keeps = false;
  std::vector<Event::Kind> events;
  SessionHost host{io, *this};
};

// A flow that hears of its stream's end, and releases it there.
struct User final : StreamUser {
  User(Hosted& of, Stream& stream) : hosted(of), id(stream.id()) {
    of.host.give_user(id, *this);
  }
  void on_stream_event(EventKind kind) override {
    told.push_back(kind);
    if (kind == EventKind::reset) hosted.host.release(id);
  }
  Hosted& hosted;
  StreamId id;
  std::vector<EventKind> told;
};

}  // namespace

TEST_CASE("session host: every flow hears once that its session has ended, and then there is none") {
  Hosted hosted;
  hosted.begin();
  std::vector<std::unique_ptr<User>> users;
  for (int i = 0; i < 100; ++i)
    users.push_back(std::make_unique<User>(hosted, hosted.open()));
  CHECK(hosted.host.resumable());
  CHECK(hosted.host.end());
  CHECK_FALSE(hosted.host.end());  // once
  CHECK(hosted.host.ending());
  CHECK_FALSE(hosted.host.resumable());
  for (const auto& user : users) CHECK(user->told.empty());  // in later turns of the loop
  hosted.io.run();
  CHECK(hosted.host.session() == nullptr);
  CHECK_FALSE(hosted.host.ending());
  for (const auto& user : users) CHECK(user->told == std::vector{EventKind::reset});
  CHECK(hosted.events == std::vector{Event::Kind::expired});
  CHECK(hosted.retained.used_bytes() == 0);
}

TEST_CASE("session host: streams that must not end yet are kept, and who waits for the end goes on then") {
  Hosted hosted;
  hosted.begin();
  User user(hosted, hosted.open());
  hosted.keeps = true;
  bool over = false;
  REQUIRE(hosted.host.end());
  boost::asio::co_spawn(hosted.io, [](Hosted& h, bool& done) -> boost::asio::awaitable<void> {
    co_await h.host.wait_for_end();
    done = true;
  }(hosted, over), boost::asio::detached);
  for (int i = 0; i < 50; ++i) hosted.io.poll_one();
  CHECK(user.told.empty());
  CHECK_FALSE(over);
  hosted.keeps = false;
  hosted.io.run();
  CHECK(user.told == std::vector{EventKind::reset});
  CHECK(over);
}

TEST_CASE("session host: events that a flow causes are delivered in the same round, and never within its call") {
  Hosted hosted;
  hosted.begin();
  struct Nested final : StreamUser {
    explicit Nested(Hosted& of) : hosted(of) {}
    void on_stream_event(EventKind) override {
      ++told;
      CHECK(hosted.host.deliver_events() == SessionHost::Delivered::nested);
    }
    Hosted& hosted;
    int told = 0;
  } nested(hosted);
  Stream& stream = hosted.open();
  hosted.host.give_user(stream.id(), nested);
  hosted.host.session()->abandon(Clock::now());
  hosted.host.session()->end_streams(1);
  CHECK(hosted.host.deliver_events() == SessionHost::Delivered::expired);
  CHECK(nested.told == 1);
}

TEST_CASE("session host: a host that is gone is not touched by what waits in the loop") {
  boost::asio::io_context io;
  struct Silent final : SessionHost::Owner {
    void after_activity() override { FAIL("the host is gone"); }
    void kick() override { FAIL("the host is gone"); }
    void on_opened(Stream&) override {}
    void on_session_event(const Event&) override {}
    void on_failure(const std::string&) override {}
    bool keeps_streams() const override { return false; }
  } owner;
  CreditPool pool{64 << 20, 1024};
  RetainedBudget retained{64 << 20};
  auto host = std::make_unique<SessionHost>(io, owner);
  host->begin({}, pool, retained, nullptr, Token{});
  host->session()->attach(CarrierId(1), Clock::now(), std::chrono::milliseconds(1));
  host->arm_timer();
  host->end();
  host.reset();
  io.run();
}
