// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/module_host.h"

#include "hosted_flow.h"
#include "proxy/modules/smb/reasons.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::flows::hosted;

TEST_CASE("a module that forwards everything changes nothing, however the bytes are split") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    Flow flow({.seed = seed, .line = {.max_piece = seed % 3 ? std::size_t{777} : 0}});
    const std::string up = pattern(100'000 + 7 * seed, seed), down = pattern(700'001, seed + 100);
    flow.near.random.seed(seed);
    flow.far.random.seed(seed + 50);
    flow.near.most_piece = flow.far.most_piece = seed % 2 ? 64 * 1024 : 300;
    flow.near.to_send = up;
    flow.far.to_send = down;
    REQUIRE(flow.run_until([&] { return flow.complete(); }));
    CHECK((flow.far.received == up));
    CHECK((flow.near.received == down));
    CHECK(flow.near.probe->stream_endings == std::vector{Ending::closed});
    CHECK(flow.near.host->stream_is_over());
  }
}

TEST_CASE("messages keep their position between the bytes, and the bytes are complete") {
  Flow flow;
  std::string heard;
  flow.near.probe->lan = [](Probe& self, Slice bytes) {
    self.say(ToTwin{Probe::slice("before " + Probe::text(bytes))});
    self.say(ToStream{bytes});
    self.say(ToTwin{Slice{}});
  };
  flow.far.probe->stream = [&](Probe&, Slice bytes) { heard += Probe::text(bytes); };
  flow.far.probe->twin = [&](Probe&, Slice message) { heard += "<" + Probe::text(message) + ">"; };
  for (const char* said : {"one", "two", "three"}) {
    flow.near.closes = false;
    flow.near.to_send = said;
    flow.run_until([] { return false; }, 100ms);
  }
  CHECK(heard == "<before one>one<><before two>two<><before three>three<>");
}

TEST_CASE("a message larger than the window arrives complete, in several pieces") {
  config::Features features = probe_features();
  features.window_bytes = 1024;
  Flow flow({}, features);
  const std::string large = pattern(modules::kMaxTwinMessage, 3);
  flow.near.probe->lan = [&](Probe& self, Slice bytes) {
    self.say(ToTwin{Probe::slice(large)});
    self.say(ToStream{std::move(bytes)});
    self.say(ToTwin{Probe::slice("small")});
  };
  flow.near.to_send = "x";
  REQUIRE(flow.run_until([&] { return flow.far.shut; }));
  REQUIRE(flow.far.probe->messages.size() == 2);
  CHECK((flow.far.probe->messages[0] == large));
  CHECK(flow.far.probe->messages[1] == "small");
  CHECK(flow.far.received == "x");
}

TEST_CASE("bytes that a half holds back, injects or answers itself reach the right receiver") {
  Flow flow;
  flow.far.closes = false;
  // The far half asks the server by itself, and pushes the answer; the near half answers the client with it.
  flow.far.probe->stream = [](Probe& self, Slice) { self.say(ToLan{Probe::slice("all of it?")}); };
  flow.far.probe->lan = [](Probe& self, Slice bytes) {
    self.say(ToTwin{Probe::slice("ahead")});
    self.say(ToStream{std::move(bytes)});
  };
  std::string held;
  flow.near.probe->stream = [&](Probe&, Slice bytes) { held += Probe::text(bytes); };
  flow.near.closes = false;
  flow.near.to_send = "open";
  REQUIRE(flow.run_until([&] { return flow.far.received == "all of it?"; }));
  flow.far.to_send = "content";
  REQUIRE(flow.run_until([&] { return held == "content"; }));
  CHECK(flow.near.probe->messages == std::deque<std::string>{"ahead"});
  CHECK(flow.near.received.empty());
  flow.near.probe->lan = [&](Probe& self, Slice) { self.say(ToLan{Probe::slice(held)}); };
  const std::uint64_t before = flow.near.stream()->writer().credit().available();
  flow.near.to_send = "read";
  REQUIRE(flow.run_until([&] { return flow.near.received == "content"; }));
  CHECK(flow.near.stream()->writer().credit().available() == before);  // nothing crossed the line
  CHECK(flow.far.received == "all of it?");
}

TEST_CASE("the end of a flow waits for promises only") {
  Flow flow;
  // The far half owes the client's end until the server has said something.
  flow.far.probe->stream_end = [](Probe&, Ending) {};
  flow.far.probe->lan = [](Probe& self, Slice bytes) {
    self.say(ToStream{std::move(bytes)});
    self.say(EndLan{});
  };
  flow.near.to_send = "write";
  flow.far.closes = false;
  REQUIRE(flow.run_until([&] { return flow.far.received == "write"; }));
  flow.run_until([] { return false; }, 5s);
  CHECK_FALSE(flow.far.shut);
  CHECK(flow.far.probe->stream_endings == std::vector{Ending::closed});
  flow.far.to_send = "written";
  flow.far.closes = true;
  REQUIRE(flow.run_until([&] { return flow.complete(); }));
  CHECK(flow.near.received == "written");
}

TEST_CASE("a half can step aside at any point without losing or repeating bytes") {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Flow flow({.seed = seed, .line = {.max_piece = 1 + 997 * (seed % 2)}});
    std::mt19937 random(seed);
    const std::string up = pattern(60'000, seed);
    std::string down = pattern(300'000, seed + 9);
    std::ranges::replace(down, '#', '.');
    const std::size_t up_at = random() % 60'000, down_at = random() % 300'000;
    std::size_t up_seen = 0, down_seen = 0, after = 0;
    bool late = seed % 4 == 0;
    flow.near.most_piece = flow.far.most_piece = seed % 2 ? 5000 : 50'000;
    flow.near.to_send = up;
    flow.far.to_send = down;
    flow.near.probe->lan = [&](Probe& self, Slice bytes) {
      up_seen += bytes.size();
      self.say(ToTwin{Probe::slice("m")});
      if (up_seen <= up_at) return self.say(ToStream{std::move(bytes)});
      // What is held follows.
      self.say(StepAside{Way::to_stream, smb::reasons::smb_not_understood});
      self.say(ToStream{std::move(bytes)});
    };
    flow.far.probe->lan = [&](Probe& self, Slice bytes) {
      down_seen += bytes.size();
      // Between the flow's bytes stands what is not the client's.
      self.say(ToStream{Probe::slice("##")});
      self.say(ToStream{std::move(bytes)});
      if (down_seen > down_at) self.say(StepAside{Way::to_stream});
    };
    // The near half takes that out again. It was split anywhere, so it counts.
    std::string gathered;
    flow.near.probe->stream = [&](Probe& self, Slice bytes) {
      if (self.twin_is_aside) {
        ++after;
        return self.say(ToLan{std::move(bytes)});
      }
      gathered += Probe::text(bytes);
    };
    flow.near.probe->twin_aside = [&](Probe& self) {
      std::string plain = gathered;
      for (std::size_t at = 0; (at = plain.find("##", at)) != plain.npos;) plain.erase(at, 2);
      std::string expected = down.substr(0, plain.size());
      CHECK((plain == expected));
      self.say(ToLan{Probe::slice(plain)});
      if (!late) return self.say(StepAside{Way::to_lan});
      self.deadline = self.now + 70ms;
    };
    flow.near.probe->time = [](Probe& self) { self.say(StepAside{Way::to_lan}); };
    REQUIRE(flow.run_until([&] { return flow.complete(); }));
    CHECK((flow.far.received == up));
    CHECK((flow.near.received == down));
    CHECK(flow.near.host->passes(Way::to_stream));
    if (!late) CHECK(flow.near.host->passes(Way::to_lan));
    CHECK(flow.near.host->reason() == smb::reasons::smb_not_understood);
    if (!late) CHECK(after == 0);
  }
}

TEST_CASE("a half that steps aside when its peer reads no more ends its own flow only") {
  Flow flow;
  flow.near.probe->lan = [](Probe& self, Slice bytes) {
    self.say(StepAside{Way::to_stream, smb::reasons::smb_not_understood});
    self.say(ToStream{std::move(bytes)});
  };
  // As the event of a stop does, before the half has heard of the end.
  flow.near.host->stream_stopped();
  flow.near.host->from_lan(flow.pair.now(), Probe::slice("not understood"));
  flow.near.host->from_lan(flow.pair.now(), Probe::slice("nor this"));
  CHECK_FALSE(flow.near.host->aborts());
}

TEST_CASE("both sides receive an abort after all data sent before it") {
  Flow flow;
  flow.near.closes = flow.far.closes = false;
  flow.near.probe->lan = [](Probe& self, Slice bytes) {
    self.say(ToStream{std::move(bytes)});
    self.say(ToLan{Probe::slice("sorry")});
    self.say(Abort{});
    self.say(ToLan{Probe::slice("never said")});
  };
  flow.near.to_send = "last words";
  REQUIRE(flow.run_until([&] { return flow.near.was_reset && flow.far.was_reset; }));
  CHECK(flow.near.received == "sorry");
  CHECK(flow.far.received == "last words");
  CHECK(flow.far.probe->stream_endings == std::vector{Ending::reset});
}

TEST_CASE("resetting a client does not cancel data that was promised to it") {
  Flow flow;
  const std::string promised = pattern(2'000'000, 5);
  flow.near.to_send = promised;
  flow.near.closes = false;
  flow.near.resets = true;
  flow.far.reads = false;
  bool server_has_answered = false;
  flow.far.closes = false;
  flow.far.probe->stream_end = [](Probe&, Ending) {};
  flow.far.probe->lan = [&](Probe& self, Slice bytes) {
    server_has_answered = true;
    self.say(ToStream{std::move(bytes)});  // without a reader
    self.say(Abort{});
  };
  flow.run_until([] { return false; }, 2s);
  flow.far.reads = true;
  REQUIRE(flow.run_until([&] { return flow.far.received.size() == promised.size(); }));
  CHECK((flow.far.received == promised));
  CHECK_FALSE(flow.far.was_reset);
  REQUIRE(flow.run_until([&] { return flow.near.was_reset; }));
  flow.far.to_send = "written";
  REQUIRE(flow.run_until([&] { return flow.far.was_reset; }));
  CHECK(server_has_answered);
  CHECK_FALSE(flow.far.gave_up);
}

TEST_CASE("the host gives up a half that does not respond to a reset within a minute") {
  Flow flow;
  flow.near.closes = flow.far.closes = false;
  flow.near.resets = true;
  flow.far.probe->stream_end = [](Probe&, Ending) {};
  REQUIRE(flow.run_until([&] { return !flow.far.probe->stream_endings.empty(); }));
  flow.run_until([] { return false; }, 55s);
  CHECK_FALSE(flow.far.gave_up);
  flow.run_until([] { return false; }, 10s);
  CHECK(flow.far.gave_up);
}

TEST_CASE("a reader that stops delays only its own flow, and the host buffers little of it") {
  Flow flow({.credit_bytes = 8 << 20, .retained_bytes = 8 << 20});
  flow.far.to_send = pattern(20'000'000, 1);
  flow.near.reads = false;
  flow.near.closes = false;
  flow.run_until([] { return false; }, 20s);
  CHECK(flow.near.host->to_lan().size() <= 192 * 1024);
  CHECK(flow.far.to_send.size() > 10'000'000);
  CHECK_FALSE(flow.far.host->takes_lan());
  // The other way goes on.
  flow.near.to_send = "still here";
  REQUIRE(flow.run_until([&] { return flow.far.received == "still here"; }));
  flow.near.reads = true;
  REQUIRE(flow.run_until([&] { return flow.near.shut; }));
  CHECK((flow.near.received == pattern(20'000'000, 1)));
}

TEST_CASE("a half is woken at its deadline and is given the flow's surroundings") {
  Flow flow;
  flow.near.closes = flow.far.closes = false;
  flow.run_until([] { return false; }, 10ms);
  Probe& probe = *flow.near.probe;
  CHECK(probe.told_surroundings == 1);
  CHECK(probe.surroundings.line_bytes_per_second == 1'000'000);
  CHECK(probe.surroundings.round_trip == 40ms);
  CHECK(probe.surroundings.stream_room > 0);
  CHECK(probe.surroundings.features.modules.value("probe.ahead") == 1);
  probe.deadline = flow.pair.now() + 50ms;
  CHECK(flow.near.host->next_timeout() == probe.deadline);
  bool woken = false;
  probe.time = [&](Probe& self) {
    woken = true;
    self.say(ToStream{Probe::slice("time")});
  };
  REQUIRE(flow.run_until([&] { return flow.far.received == "time"; }, 1s));
  CHECK(woken);
  config::Features features = probe_features();
  features.modules.set("probe.ahead", 0);
  flow.pair.a.session.change_features(flow.near.id, features);
  flow.near.host->features_changed();
  flow.run_until([] { return false; }, 100ms);
  CHECK(probe.surroundings.features.modules.value("probe.ahead") == 0);
  CHECK(flow.far.probe->surroundings.features.modules.value("probe.ahead") == 0);
}

TEST_CASE("a half that says more than others have asked for says it as there is room, and all of it") {
  Flow flow({.credit_bytes = 1 << 20});
  flow.near.closes = flow.far.closes = false;
  const std::string all = pattern(5'000'000, 3);
  std::size_t to_client = 0, to_server = 0;
  flow.near.probe->room = [&](Probe& self, const Room& room) {
    const auto next = [&](std::size_t& said) {
      const std::size_t from = said;
      said = std::min(all.size(), said + 64 * 1024);
      return Probe::slice(std::string_view(all).substr(from, said - from));
    };
    if (room.lan && to_client < all.size()) self.say(ToLan{next(to_client)});
    if (room.stream && to_server < all.size()) self.say(ToStream{next(to_server)});
  };
  flow.near.reads = flow.far.reads = false;
  flow.run_until([] { return false; }, 20s);
  CHECK(to_client <= 192 * 1024);
  CHECK(flow.near.host->to_lan().size() == to_client);
  CHECK(to_server < 3'000'000);
  // One that reads does not wait for the other.
  flow.near.reads = true;
  REQUIRE(flow.run_until([&] { return flow.near.received.size() == all.size(); }));
  CHECK(to_server < 3'000'000);
  flow.far.reads = true;
  REQUIRE(flow.run_until([&] { return flow.far.received.size() == all.size(); }));
  CHECK((flow.near.received == all));
  CHECK((flow.far.received == all));
}

TEST_CASE("an invalid message from the peer's half ends the flow") {
  SECTION("a message without end") {
    Flow flow;
    flow.near.closes = flow.far.closes = false;
    std::string piece(60'000, 'x');
    piece[0] = 1;
    for (int i = 0; i < 5; ++i) {
      flow.near.stream()->writer().write_message(as_bytes(piece));
      flow.run_until([] { return false; }, 100ms);
    }
    CHECK(flow.far.was_reset);
    CHECK(flow.near.was_reset);
  }
  SECTION("nothing at all") {
    Flow flow;
    flow.near.closes = flow.far.closes = false;
    flow.near.stream()->writer().write_message({});
    flow.run_until([] { return false; }, 200ms);
    CHECK(flow.far.was_reset);
  }
  SECTION("something of a later version is skipped") {
    Flow flow;
    const std::string later = "\x07hello";
    flow.near.stream()->writer().write_message(as_bytes(later));
    flow.near.to_send = "x";
    REQUIRE(flow.run_until([&] { return flow.complete(); }));
    CHECK(flow.far.received == "x");
  }
}

TEST_CASE("a host tells a module of arrivals by what the LAN's kernel has not delivered yet") {
  Flow flow;
  flow.near.closes = false;
  flow.near.probe->lan = [](Probe& self, Slice) {
    self.say(ToLan{Probe::slice("answer")});
    ++self.awaits;
  };
  flow.near.reads = false;
  flow.near.to_send = "question";
  REQUIRE(flow.run_until([&] { return !flow.near.host->to_lan().empty(); }));
  CHECK(flow.near.host->awaits_arrival());
  flow.near.host->lan_arrived(0);  // the kernel has not taken it
  CHECK(flow.near.probe->arrivals.empty());
  flow.near.host->lan_took(6);
  flow.near.host->lan_arrived(1);
  CHECK(flow.near.probe->arrivals.empty());
  flow.near.host->lan_arrived(~std::size_t{0});  // not known
  CHECK(flow.near.probe->arrivals.empty());
  flow.near.host->lan_arrived(0);
  CHECK(flow.near.probe->arrivals == std::vector<std::uint64_t>{1});
  CHECK_FALSE(flow.near.host->awaits_arrival());
}
