// SPDX-License-Identifier: Apache-2.0
// One half of any module, held to the contract of modules/module.h: whatever comes in, what it puts out is in order and
// ends once. What comes in is the tests' and the fuzz targets'.
#pragma once
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "proxy/modules/module.h"

namespace longhaul::kit {

inline constexpr std::size_t kMostHeld = 64 << 20;

// Throws what no fuzz target and no test catches.
inline void check(bool holds, int line = __builtin_LINE()) {
  if (!holds) throw std::logic_error("a module breaks its contract: watched.h, line " + std::to_string(line));
}

class Watched {
 public:
  explicit Watched(std::unique_ptr<modules::Module> half) : module(*half), half_(std::move(half)) {}

  modules::Module& module;
  std::deque<modules::Output> to_twin;  // bytes, messages and ends, in order
  std::deque<Slice> to_lan;
  std::string isolated, shared;  // all bytes to the twin, as ToStream says
  bool redialled = false;  // since the user last cleared it
  bool aborted = false, stream_ended = false, lan_ended = false;
  bool steps_aside = false, passes_to_lan = false;  // to the stream, to the LAN
  bool twin_steps_aside = false;
  bool lan_input_ended = false, stream_input_ended = false;

  bool done() const { return aborted || (steps_aside && passes_to_lan); }

  // Bytes of the client's or the server's, and their end.
  void from_lan(link::TimePoint now, Slice bytes) {
    if (aborted || lan_input_ended) return;
    if (steps_aside) {
      to_twin.push_back(modules::ToStream{std::move(bytes)});
      return;
    }
    module.from_lan(now, std::move(bytes));
    collect();
  }
  void end(link::TimePoint now) {
    if (done() || lan_input_ended) return;
    lan_input_ended = true;
    if (steps_aside) {
      to_twin.push_back(modules::EndStream{});
      return;
    }
    module.lan_ended(now, modules::Ending::closed);
    collect();
  }

  // All of it arrives at once.
  void collect() {
    module.arrived(module.awaited());
    std::size_t held = 0;
    bool holds_rest = false;  // of what it held when it stepped aside
    while (auto output = module.poll_output()) {
      if (auto* lan = std::get_if<modules::ToLan>(&*output)) {
        check(!lan_ended && !passes_to_lan);
        held += lan->bytes.size();
        to_lan.push_back(std::move(lan->bytes));
      } else if (std::holds_alternative<modules::EndLan>(*output)) {
        check(!lan_ended && !passes_to_lan);
        lan_ended = true;
      } else if (std::holds_alternative<modules::Abort>(*output)) {
        aborted = true;
      } else if (std::holds_alternative<modules::Redial>(*output)) {
        check(!lan_ended && !passes_to_lan && redials_++ == 0);
        to_lan.clear();
        redialled = true;
        lan_input_ended = false;
      } else if (auto* aside = std::get_if<modules::StepAside>(&*output)) {
        if (aside->way == modules::Way::to_lan) {
          check(twin_steps_aside && !passes_to_lan && !lan_ended);
          passes_to_lan = true;
        } else {
          check(!steps_aside && !stream_ended);
          steps_aside = holds_rest = true;
          to_twin.push_back(*output);
        }
      } else {
        const auto* message = std::get_if<modules::ToTwin>(&*output);
        if (message && stream_ended) continue;  // dropped
        check(!stream_ended);
        // Behind stepping aside, nothing but what was held.
        check(!steps_aside || (holds_rest && std::holds_alternative<modules::ToStream>(*output)));
        if (const auto* raw = std::get_if<modules::ToStream>(&*output))
          (raw->is_isolated ? isolated : shared).append(as_text(raw->bytes.bytes()));
        if (message) check(!message->message.empty() && message->message.size() <= modules::kMaxTwinMessage);
        if (std::holds_alternative<modules::EndStream>(*output)) stream_ended = true;
        to_twin.push_back(std::move(*output));
      }
      check(held <= kMostHeld);
    }
  }

 private:
  std::unique_ptr<modules::Module> half_;
  int redials_ = 0;
};

// One thing that is on its way between them; of bytes, at most so many. False: nothing is.
inline bool deliver(Watched& from, Watched& to, link::TimePoint now, std::size_t most_bytes = ~std::size_t{0}) {
  if (from.to_twin.empty() || from.aborted || to.aborted) return false;
  modules::Output output = std::move(from.to_twin.front());
  from.to_twin.pop_front();
  if (auto* raw = std::get_if<modules::ToStream>(&output)) {
    if (raw->bytes.size() > most_bytes) {
      from.to_twin.push_front(modules::ToStream{raw->bytes.from(most_bytes)});
      raw->bytes = raw->bytes.sub(0, most_bytes);
    }
    if (to.passes_to_lan) {
      to.to_lan.push_back(raw->bytes);
    } else {
      to.module.from_stream(now, raw->bytes);
    }
  } else if (auto* message = std::get_if<modules::ToTwin>(&output)) {
    if (!to.done()) to.module.from_twin(now, message->message);
  } else if (std::holds_alternative<modules::StepAside>(output)) {
    to.twin_steps_aside = true;
    if (!to.done()) to.module.twin_stepped_aside(now);
  } else if (!to.stream_input_ended) {
    to.stream_input_ended = true;
    if (!to.passes_to_lan) to.module.stream_ended(now, modules::Ending::closed);
  }
  to.collect();
  return true;
}

}  // namespace longhaul::kit
