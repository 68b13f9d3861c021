// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/module_host.h"

#include <catch2/catch.hpp>
#include <random>

#include "../link/simulated_pair.h"
#include "probe_module.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::modules;
using link::simulation::Endpoint;
using link::simulation::Pair;
using link::simulation::PairOptions;
using namespace std::chrono_literals;

namespace {

// One side of a flow: what LinkedFlow does, with strings in the place of a socket.
struct Half {
  Endpoint* side = nullptr;
  link::StreamId id = 0;
  std::unique_ptr<ModuleHost> host;
  Probe* probe = nullptr;

  std::string to_send;  // by the application on this LAN
  bool closes = true;   // after that
  bool resets = false;  // instead
  bool reads = true;
  std::mt19937 random{1};
  std::size_t most_piece = 64 * 1024;

  std::string received;
  bool begun = false;      // nothing is read from the application before
  bool shut = false;       // the application has read the end
  bool was_reset = false;  // its connection was
  bool closed = false, gone = false;
  bool gave_up = false;

  link::Stream* stream() { return side->session.find(id); }
  std::size_t piece() { return 1 + random() % most_piece; }
};

class Flow {
 public:
  explicit Flow(PairOptions options = {}, config::Features features = {},
                std::shared_ptr<Memory> of_all = std::make_shared<Memory>(1 << 30))
      : memory(std::move(of_all)), pair(options) {
    pair.connect();
    pair.run_for(200ms);
    link::OpenRequest request;
    request.destination.address = boost::asio::ip::make_address("10.10.2.2");
    request.destination.port = 445;
    request.features = features;
    pair.b.on_event = [this](const link::Event& event) {
      if (event.kind != link::Event::Kind::stream) return;
      if (event.stream_event == link::EventKind::opened) {
        far.side = &pair.b;
        far.id = event.stream;
        far.stream()->give_answer({.module_accepted = true});
        begin(far);
      }
      tell(far, event);
    };
    pair.a.on_event = [this](const link::Event& event) {
      if (event.kind == link::Event::Kind::stream) tell(near, event);
    };
    link::Stream& stream = pair.a.session.open(request, pair.now());
    near.side = &pair.a;
    near.id = stream.id();
    begin(near);
    REQUIRE(run_until([&] { return far.host != nullptr; }));
    near.begun = far.begun = true;
  }

  std::shared_ptr<Memory> memory;
  Pair pair;
  Half near, far;

  void pump(Half& half) {
    if (!half.host || half.gone) return;
    for (bool moved = true; moved;) {
      const link::TimePoint now = pair.now();
      moved = half.host->run(now, {.bytes_per_second = 1'000'000, .round_trip = 40ms});
      moved |= deliver(half);
      moved |= read(half, now);
    }
    if (half.host->gave_up()) half.gave_up = half.was_reset = half.gone = true;
    if (half.host->aborts() && half.host->to_lan().empty()) {
      half.stream()->abort();
      half.was_reset = half.gone = true;
    }
  }
  bool run_until(const std::function<bool()>& done, link::Duration time = 60s) {
    const link::TimePoint end = pair.now() + time;
    while (!done() && pair.now() < end) {
      pair.run_for(3ms);
      pump(near);
      pump(far);
    }
    return done();
  }
  bool complete() const { return near.shut && far.shut; }

 private:
  void begin(Half& half) {
    auto probe = std::make_unique<Probe>();
    half.probe = probe.get();
    half.host = std::make_unique<ModuleHost>(std::move(probe), *half.stream(), memory);
  }
  void tell(Half& half, const link::Event& event) {
    if (event.stream_event == link::EventKind::stopped) half.host->stream_stopped();
    if (event.stream_event == link::EventKind::reset) half.was_reset = half.gone = true;
    if (event.stream_event == link::EventKind::features) half.host->features_changed();
    // As in the daemon, what is told here is looked at once the events are done with.
  }
  bool deliver(Half& half) {
    bool moved = false;
    while (half.reads && !half.host->to_lan().empty()) {
      Slice piece = half.host->to_lan().front();
      piece = piece.sub(0, std::min(piece.size(), half.piece()));
      half.received += Probe::text(piece);
      half.host->lan_took(piece.size());
      moved = true;
    }
    if (half.host->lan_is_over()) half.shut = true;
    // The plain pump.
    if (half.reads && half.host->passes(Way::to_lan) && !half.shut) {
      link::Stream& stream = *half.stream();
      while (!stream.readable().empty()) {
        Slice piece = stream.readable().front();
        half.received += Probe::text(piece);
        stream.consume(piece.size(), pair.now(), 40ms);
        moved = true;
      }
      half.host->take_messages(pair.now(), 40ms);
      if (stream.read_state() == link::ReadState::ended) half.shut = true;
      if (stream.read_state() == link::ReadState::aborted) half.was_reset = half.gone = true;
    }
    return moved;
  }
  bool read(Half& half, link::TimePoint now) {
    const bool plain = half.host->passes(Way::to_stream);
    if (!half.begun || half.closed || (!plain && !half.host->takes_lan())) return false;
    if (half.to_send.empty()) {
      if (!half.closes && !half.resets) return false;
      half.closed = true;
      if (plain) {
        half.stream()->end();
      } else {
        half.host->lan_ended(now, half.resets ? Ending::reset : Ending::closed);
      }
      return true;
    }
    std::size_t size = std::min(half.to_send.size(), half.piece());
    if (plain) size = std::min(size, half.stream()->may_write());
    if (size == 0) return false;
    Slice bytes = Probe::slice(half.to_send.substr(0, size));
    plain ? half.stream()->write(std::move(bytes)) : half.host->from_lan(now, std::move(bytes));
    half.to_send.erase(0, size);
    return true;
  }
};

std::string pattern(std::size_t size, std::uint32_t seed) {
  std::string text(size, '\0');
  for (char& byte : text) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<char>(seed >> 24);
  }
  return text;
}

}  // namespace

TEST_CASE("a module that passes everything on changes nothing, however the bytes are cut") {
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

TEST_CASE("messages stand at their place between the bytes, and take no byte from them") {
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

TEST_CASE("a message larger than the window arrives in pieces and whole") {
  config::Features features;
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

TEST_CASE("what a half holds back, injects and answers itself reaches whom it is for") {
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
  const std::uint64_t before = flow.near.stream()->send_credit().available();
  flow.near.to_send = "read";
  REQUIRE(flow.run_until([&] { return flow.near.received == "content"; }));
  CHECK(flow.near.stream()->send_credit().available() == before);  // nothing crossed the line
  CHECK(flow.far.received == "all of it?");
}

TEST_CASE("an end waits for what was promised, and for nothing else") {
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

TEST_CASE("a half that steps aside loses and doubles nothing, wherever it does") {
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
      self.say(StepAside{Way::to_stream, Reason::smb_not_understood});
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
    CHECK(flow.near.host->reason() == Reason::smb_not_understood);
    if (!late) CHECK(after == 0);
  }
}

TEST_CASE("an abort is heard on both sides, behind all that was said before") {
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

TEST_CASE("a client that is reset does not take away what was promised to it") {
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
    self.say(ToStream{std::move(bytes)});  // nobody reads it
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

TEST_CASE("a half that does not answer a reset is given up after a minute") {
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

TEST_CASE("a reader that stops holds up its own flow, and the host holds little of it") {
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

TEST_CASE("a half is woken at its deadline and told its surroundings") {
  Flow flow;
  flow.near.closes = flow.far.closes = false;
  flow.run_until([] { return false; }, 10ms);
  Probe& probe = *flow.near.probe;
  CHECK(probe.told_surroundings == 1);
  CHECK(probe.surroundings.line_bytes_per_second == 1'000'000);
  CHECK(probe.surroundings.round_trip == 40ms);
  CHECK(probe.surroundings.stream_room > 0);
  CHECK(probe.surroundings.features.smb_read_ahead);
  probe.deadline = flow.pair.now() + 50ms;
  CHECK(flow.near.host->next_timeout() == probe.deadline);
  bool woken = false;
  probe.time = [&](Probe& self) {
    woken = true;
    self.say(ToStream{Probe::slice("time")});
  };
  REQUIRE(flow.run_until([&] { return flow.far.received == "time"; }, 1s));
  CHECK(woken);
  config::Features features;
  features.smb_read_ahead = false;
  flow.pair.a.session.change_features(flow.near.id, features);
  flow.near.host->features_changed();
  flow.run_until([] { return false; }, 100ms);
  CHECK_FALSE(probe.surroundings.features.smb_read_ahead);
  CHECK_FALSE(flow.far.probe->surroundings.features.smb_read_ahead);
}

TEST_CASE("a twin that says what no twin may say ends the flow") {
  SECTION("a message without end") {
    Flow flow;
    flow.near.closes = flow.far.closes = false;
    std::string piece(60'000, 'x');
    piece[0] = 1;
    for (int i = 0; i < 5; ++i) {
      flow.near.stream()->write_message(as_bytes(piece));
      flow.run_until([] { return false; }, 100ms);
    }
    CHECK(flow.far.was_reset);
    CHECK(flow.near.was_reset);
  }
  SECTION("nothing at all") {
    Flow flow;
    flow.near.closes = flow.far.closes = false;
    flow.near.stream()->write_message({});
    flow.run_until([] { return false; }, 200ms);
    CHECK(flow.far.was_reset);
  }
  SECTION("something of a later version is skipped") {
    Flow flow;
    const std::string later = "\x07hello";
    flow.near.stream()->write_message(as_bytes(later));
    flow.near.to_send = "x";
    REQUIRE(flow.run_until([&] { return flow.complete(); }));
    CHECK(flow.far.received == "x");
  }
}

TEST_CASE("what modules hold of all flows is counted, bounded, and given up where nothing else moves") {
  constexpr std::size_t kCap = 1 << 20, kFlows = 8;
  const auto memory = std::make_shared<Memory>(kCap);
  const std::string sent = pattern(400'000, 7);
  {
    std::vector<std::unique_ptr<Flow>> flows;
    std::size_t gave_up = 0;
    for (std::size_t i = 0; i < kFlows; ++i) {
      flows.push_back(std::make_unique<Flow>(PairOptions{.seed = static_cast<std::uint32_t>(i + 1)},
                                             config::Features{}, memory));
      Flow& flow = *flows.back();
      flow.near.closes = flow.far.closes = false;
      flow.near.to_send = sent;
      // Parts of a frame that is larger than all that the client says for now.
      flow.near.probe->lan = [](Probe& self, Slice bytes) {
        self.messages.push_back(Probe::text(bytes));
        self.held += bytes.size();
      };
      flow.near.probe->memory_gone = [&gave_up](Probe& self) {
        if (self.messages.empty()) return;
        ++gave_up;
        self.held = 0;
        self.say(StepAside{Way::to_stream, Reason::memory_limit});
        for (const std::string& part : std::exchange(self.messages, {}))
          self.say(ToStream{Probe::slice(part)});
      };
    }
    const auto run = [&](link::Duration time) {
      for (link::Duration at{0}; at < time; at += 30ms)
        for (auto& flow : flows) flow->run_until([] { return false; }, 30ms);
    };
    run(900ms);
    CHECK(memory->is_short());
    CHECK(memory->used_bytes() <= kCap + kFlows * 128 * 1024);
    CHECK(gave_up == 0);  // not before it has lasted
    for (const auto& flow : flows) CHECK_FALSE(flow->near.host->takes_lan());
    run(2s);
    CHECK_FALSE(memory->is_short());
    CHECK(gave_up > 0);
    std::size_t plain = 0;
    for (auto& flow : flows) {
      CHECK(flow->near.to_send.empty());
      if (flow->near.host->reason() != Reason::memory_limit) continue;
      ++plain;
      CHECK((flow->far.received == sent));
    }
    CHECK(plain == gave_up);
  }
  CHECK(memory->used_bytes() == 0);
}

TEST_CASE("a flow that holds little goes on while others have used up the modules' memory") {
  const auto memory = std::make_shared<Memory>(1 << 20);
  memory->add(2 << 20);
  Flow flow({}, {}, memory);
  flow.near.to_send = pattern(500'000, 3);
  flow.far.to_send = pattern(700'000, 4);
  REQUIRE(flow.run_until([&] { return flow.complete(); }));
  CHECK((flow.far.received == pattern(500'000, 3)));
  CHECK((flow.near.received == pattern(700'000, 4)));
  CHECK(flow.near.host->reason() == Reason::optimised);
}
