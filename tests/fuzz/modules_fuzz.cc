// SPDX-License-Identifier: Apache-2.0
// Every module by its descriptor alone: both halves between a client and a server that say anything, cut anywhere and in
// any order, or one half whose twin says anything. They keep to the contract of modules/module.h; as long as nobody
// lies, what one says and the other end hears stays bounded by it. The first byte of the input chooses the module.
#include <array>
#include <vector>

#include "examples/modules/redis/descriptor.h"
#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/modules.h"
#include "tests/proxy/modules/kit/template/descriptor.h"
#include "tests/proxy/modules/kit/watched.h"

namespace longhaul::fuzz::modules_target {

namespace {

// A half may hold a frame, or what it fetched, but not more than this of inputs of a few kilobytes.
constexpr std::size_t kMostState = 64 << 20;

std::vector<const modules::Descriptor*> all_modules() {
  std::vector<const modules::Descriptor*> all{&lines::kDescriptor, &redis::kDescriptor};
  for (const modules::Descriptor* each : modules::descriptors()) all.push_back(each);
  return all;
}

class Fuzzed {
 public:
  Fuzzed(const modules::Descriptor& module, Choices& choices)
      : table_{module.features},
        instance_(module.make({.ahead_bytes = 1 << 20, .daemon_number = 1})),
        ends_{.server_port = module.ports.empty() ? std::uint16_t{1} : module.ports[0]},
        choices_(choices) {}

  void run() {
    surroundings();
    while (!choices_.empty() && !near_.aborted && !far_.aborted) step();
    for (int i = 0; i < 100'000 && (deliver(near_, far_, now_) || deliver(far_, near_, now_)); ++i) {
    }
    near_.end(now_), far_.end(now_);
    for (int i = 0; i < 100'000 && (deliver(near_, far_, now_) || deliver(far_, near_, now_)); ++i) {
    }
  }

 private:
  kit::Watched& one() { return choices_.below(2) ? near_ : far_; }

  void step() {
    switch (choices_.below(10)) {
      case 0:
      case 1:
      case 2:
        one().from_lan(now_, Slice::copy_of(choices_.some(200)));
        break;
      case 3:
        now_ += std::chrono::milliseconds(choices_.byte() * 20);
        for (kit::Watched* half : {&near_, &far_})
          if (!half->done()) half->module.on_timeout(now_), half->collect();
        break;
      case 4:
        surroundings();
        break;
      case 5:
        odd(one());
        break;
      default:
        (void)(choices_.below(2) ? deliver(near_, far_, now_, 1 + choices_.byte())
                                 : deliver(far_, near_, now_, 1 + choices_.byte()));
    }
    for (kit::Watched* half : {&near_, &far_})
      require(half->module.held_bytes() + half->module.queued_bytes() + half->module.state_bytes() < kMostState);
  }

  // What a twin, or a connection, does only when something is wrong with it.
  void odd(kit::Watched& half) {
    if (half.done()) return;
    switch (choices_.below(6)) {
      case 0:
        if (const Bytes said = choices_.some(100); !half.stream_input_ended && !said.empty())
          half.module.from_twin(now_, Slice::copy_of(said));
        break;
      case 1:
        if (!half.stream_input_ended && !half.passes_to_lan)
          half.module.from_stream(now_, Slice::copy_of(choices_.some(200)));
        break;
      case 2:
        half.module.give_up_memory(now_);
        break;
      case 3:
        half.module.twin_lost();
        break;
      case 4:
        half.end(now_);
        break;
      default:
        if (half.lan_input_ended || half.steps_aside) return;
        half.lan_input_ended = true;
        half.module.lan_ended(now_, modules::Ending::reset);
    }
    half.collect();
  }

  void surroundings() {
    modules::Surroundings told{.line_bytes_per_second = choices_.byte() * 10'000ull,
                               .round_trip = std::chrono::milliseconds(choices_.byte()),
                               .stream_room = 1 << 20};
    told.features.modules = config::ModuleFeatures(table_);
    for (std::size_t row = 0; row < table_.rows().size(); ++row)
      told.features.modules.set(
          row, static_cast<std::uint8_t>(choices_.below(static_cast<unsigned>(table_.rows()[row].values.size()))));
    for (kit::Watched* half : {&near_, &far_})
      if (!half->done()) half->module.on_surroundings(now_, told), half->collect();
  }

  const config::FeatureTable table_;
  const std::unique_ptr<modules::Instance> instance_;
  const modules::Ends ends_;
  Choices& choices_;
  kit::Watched near_{instance_->make_near(ends_)}, far_{instance_->make_far(ends_, ends_.server)};
  link::TimePoint now_{std::chrono::hours(1)};
};

}  // namespace

FUZZ_TARGET(modules) {
  Choices choices(std::as_bytes(std::span(data, size)));
  const auto all = all_modules();
  const modules::Descriptor& module = *all[choices.below(static_cast<unsigned>(all.size()))];
  if (module.recognise) (void)module.recognise(Bytes(std::as_bytes(std::span(data, size))).subspan(std::min<std::size_t>(size, 1)));
  Fuzzed(module, choices).run();
  return 0;
}

}  // namespace longhaul::fuzz::modules_target
