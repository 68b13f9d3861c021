// SPDX-License-Identifier: Apache-2.0
// A module for tests: passes everything on until a test tells it otherwise, and remembers what it was told.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <string>

#include "proxy/modules/descriptor.h"

namespace longhaul::modules {

// Its features, and the table of a program that has no other module.
inline constexpr std::array<config::ModuleFeature, 3> kProbeFeatures{
    {{.name = "probe"}, {.name = "probe.ahead", .part_of = "probe"}, {.name = "probe.behind", .part_of = "probe"}}};
inline const config::FeatureTable& probe_table() {
  static const config::FeatureTable table{kProbeFeatures};
  return table;
}

class Probe final : public Module {
 public:
  using Bytes = std::function<void(Probe&, Slice)>;
  using Ends = std::function<void(Probe&, Ending)>;
  using Wakes = std::function<void(Probe&)>;

  Bytes lan = [](Probe& self, Slice bytes) { self.say(ToStream{std::move(bytes)}); };
  Bytes stream = [](Probe& self, Slice bytes) { self.say(ToLan{std::move(bytes)}); };
  Bytes twin = [](Probe& self, Slice message) { self.messages.push_back(text(message)); };
  Ends lan_end = [](Probe& self, Ending ending) {
    ending == Ending::closed ? self.say(EndStream{}) : self.say(Abort{});
  };
  Ends stream_end = [](Probe& self, Ending ending) {
    ending == Ending::closed ? self.say(EndLan{}) : self.say(Abort{});
  };
  Wakes twin_aside = [](Probe& self) { self.say(StepAside{Way::to_lan}); };
  Wakes time = [](Probe&) {};
  Wakes surroundings_changed = [](Probe&) {};
  std::function<void(Probe&, const Room&)> room = [](Probe&, const Room&) {};

  std::optional<TimePoint> deadline;
  Surroundings surroundings;
  int told_surroundings = 0;
  std::deque<std::string> messages;
  std::vector<Ending> lan_endings, stream_endings;
  bool twin_is_aside = false;
  TimePoint now{};
  std::size_t held = 0, queued = 0, state = 0;
  Wakes memory_gone = [](Probe&) {};
  Counters count;
  Reason why;
  std::uint64_t awaits = 0;
  std::vector<std::uint64_t> arrivals;

  void say(Output output) { outputs_.push_back(std::move(output)); }
  static std::string text(const Slice& bytes) {
    return {reinterpret_cast<const char*>(bytes.bytes().data()), bytes.size()};
  }
  static Slice slice(std::string_view text) { return Slice::copy_of(as_bytes(text)); }

  void on_surroundings(TimePoint at, const Surroundings& told) override {
    now = at;
    surroundings = told;
    ++told_surroundings;
    surroundings_changed(*this);
  }
  void from_lan(TimePoint at, Slice bytes) override {
    now = at;
    lan(*this, std::move(bytes));
  }
  void from_stream(TimePoint at, Slice bytes) override {
    now = at;
    stream(*this, std::move(bytes));
  }
  void from_twin(TimePoint at, Slice message) override {
    now = at;
    twin(*this, std::move(message));
  }
  void lan_ended(TimePoint at, Ending ending) override {
    now = at;
    lan_endings.push_back(ending);
    lan_end(*this, ending);
  }
  void stream_ended(TimePoint at, Ending ending) override {
    now = at;
    stream_endings.push_back(ending);
    stream_end(*this, ending);
  }
  void twin_stepped_aside(TimePoint at) override {
    now = at;
    twin_is_aside = true;
    twin_aside(*this);
  }
  void on_timeout(TimePoint at) override {
    now = at;
    deadline.reset();
    time(*this);
  }
  void on_room(TimePoint at, const Room& told) override {
    now = at;
    room(*this, told);
  }
  std::optional<Output> poll_output() override {
    if (outputs_.empty()) return std::nullopt;
    Output first = std::move(outputs_.front());
    outputs_.pop_front();
    return first;
  }
  std::uint64_t awaited() const override { return awaits; }
  void arrived(std::uint64_t outputs) override { arrivals.push_back(outputs); }
  std::size_t held_bytes() const override { return held; }
  std::size_t queued_bytes() const override { return queued; }
  std::size_t state_bytes() const override { return state; }
  void give_up_memory(TimePoint at) override {
    now = at;
    memory_gone(*this);
  }
  std::optional<TimePoint> next_timeout() const override { return deadline; }
  const Counters& counters() const override { return count; }
  Reason reason() const override { return why; }

 private:
  std::deque<Output> outputs_;
};

// A module whose halves a test makes.
class ProbeInstance final : public Instance {
 public:
  using Maker = std::function<std::unique_ptr<Module>(const Ends&)>;
  ProbeInstance(Maker near, Maker far, Losses* losses = nullptr)
      : near_(std::move(near)), far_(std::move(far)), losses_(losses) {}
  Losses* losses() override { return losses_; }
  std::unique_ptr<Module> make_near(const Ends& ends) override { return near_(ends); }
  std::unique_ptr<Module> make_far(const Ends& ends, const Address&) override { return far_(ends); }

 private:
  Maker near_, far_;
  Losses* losses_;
};

}  // namespace longhaul::modules
