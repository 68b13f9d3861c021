// SPDX-License-Identifier: Apache-2.0
// The modules' memory of all flows: counted, bounded, and the treatment of flows when it is used up.
#include "hosted_flow.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::flows::hosted;

TEST_CASE("module memory is summed over all flows, bounded, and released from flows that are stuck") {
  constexpr std::size_t kCap = 1 << 20, kFlows = 8;
  const auto memory = std::make_shared<Memory>(kCap);
  const std::string sent = pattern(400'000, 7);
  {
    std::vector<std::unique_ptr<Flow>> flows;
    std::size_t gave_up = 0;
    for (std::size_t i = 0; i < kFlows; ++i) {
      flows.push_back(std::make_unique<Flow>(PairOptions{.seed = static_cast<std::uint32_t>(i + 1)},
                                             probe_features(), memory));
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
        self.say(StepAside{Way::to_stream, flows::reasons::memory_limit});
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
      if (flow->near.host->reason() != flows::reasons::memory_limit) continue;
      ++plain;
      CHECK((flow->far.received == sent));
    }
    CHECK(plain == gave_up);
  }
  CHECK(memory->used_bytes() == 0);
}

TEST_CASE("a flow that holds little continues while others have used up the modules' memory") {
  const auto memory = std::make_shared<Memory>(1 << 20);
  memory->add(2 << 20);
  Flow flow({}, {}, memory);
  flow.near.to_send = pattern(500'000, 3);
  flow.far.to_send = pattern(700'000, 4);
  REQUIRE(flow.run_until([&] { return flow.complete(); }));
  CHECK((flow.far.received == pattern(500'000, 3)));
  CHECK((flow.near.received == pattern(700'000, 4)));
  CHECK(flow.near.host->reason() == flows::reasons::optimised);
}

TEST_CASE("if memory is short, a half with a large state is removed and its flow continues") {
  const auto memory = std::make_shared<Memory>(4 << 20);
  Flow little({.seed = 1}, {}, memory), much({.seed = 2}, {}, memory);
  for (Flow* flow : {&little, &much}) flow->near.closes = flow->far.closes = false;
  bool asked_little = false, asked_much = false;
  little.near.probe->state = 500 * 1024;
  little.near.probe->memory_gone = [&](Probe&) { asked_little = true; };
  much.near.probe->state = 5 << 20;
  much.near.probe->memory_gone = [&](Probe& self) {
    if (std::exchange(asked_much, true)) return;
    self.state = 0;
    self.say(StepAside{Way::to_stream, flows::reasons::memory_limit});
  };
  const auto run = [&](link::Duration time) {
    for (link::Duration at{0}; at < time; at += 30ms)
      for (Flow* flow : {&little, &much}) flow->run_until([] { return false; }, 30ms);
  };
  for (Flow* flow : {&little, &much}) flow->near.to_send = "a";
  run(600ms);
  CHECK(memory->is_short());
  CHECK_FALSE(asked_much);  // not before it has lasted
  // It is read all the same: what is closed, the LAN has to say.
  CHECK(much.near.host->takes_lan());
  run(2s);
  CHECK(asked_much);
  CHECK_FALSE(asked_little);
  CHECK_FALSE(memory->is_short());
  CHECK(much.near.host->reason() == flows::reasons::memory_limit);
}

TEST_CASE("if memory is short, a half that waits for the server gets only little more data") {
  const auto memory = std::make_shared<Memory>(1 << 20);
  const std::string sent = pattern(3'000'000, 8);
  Flow flow({}, {}, memory);
  flow.far.closes = false;
  Probe& far = *flow.far.probe;
  std::deque<Slice> queue;
  far.stream = [&queue](Probe& self, Slice bytes) {
    self.queued += bytes.size();
    queue.push_back(std::move(bytes));
  };
  // Each answer of the server lets one go.
  far.lan = [&queue](Probe& self, Slice) {
    if (queue.empty()) return;
    self.queued -= queue.front().size();
    self.say(ToLan{std::move(queue.front())});
    queue.pop_front();
  };
  far.stream_end = [](Probe&, Ending) {};
  flow.near.to_send = sent;
  flow.run_until([] { return false; }, 900ms);
  CHECK(memory->is_short());
  CHECK(memory->used_bytes() < (1 << 20) + 256 * 1024);
  // Answers are taken all the same: only they make room.
  CHECK(flow.far.host->takes_lan());
  const std::size_t queued = far.queued;
  flow.run_until([] { return false; }, 5s);
  // The client's word for which the server may wait comes in the end.
  CHECK(far.queued > queued);
  CHECK(far.queued <= queued + 6 * 64 * 1024);
  flow.far.most_piece = 1;
  flow.far.to_send = std::string(3'000, 'a');
  REQUIRE(flow.run_until([&] { return flow.far.received.size() == sent.size(); }));
  CHECK((flow.far.received == sent));
  CHECK_FALSE(memory->is_short());
}
