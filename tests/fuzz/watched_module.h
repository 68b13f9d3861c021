// SPDX-License-Identifier: Apache-2.0
// One half of the SMB module, held to the contract of modules/module.h: whatever came in, what it puts out is
// in order and ends once. What comes in is the fuzz targets'.
#pragma once
#include <deque>

#include "fuzz/choices.h"
#include "proxy/modules/smb/module.h"

namespace longhaul::fuzz {

inline constexpr std::size_t kMostHeld = 64 << 20;

// What a half puts out, held to the contract.
class Watched {
 public:
  explicit Watched(smb::Side side, std::uint16_t port = 445) : module(side, {.server_port = port}, {}) {}

  smb::SmbModule module;
  std::deque<modules::Output> to_twin;  // bytes, messages and ends, in order
  std::deque<Slice> to_lan;
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

  void collect() {
    std::size_t held = 0;
    bool holds_rest = false;  // of what it held when it stepped aside
    while (auto output = module.poll_output()) {
      if (auto* lan = std::get_if<modules::ToLan>(&*output)) {
        require(!lan_ended && !passes_to_lan);
        held += lan->bytes.size();
        to_lan.push_back(std::move(lan->bytes));
      } else if (std::holds_alternative<modules::EndLan>(*output)) {
        require(!lan_ended && !passes_to_lan);
        lan_ended = true;
      } else if (std::holds_alternative<modules::Abort>(*output)) {
        aborted = true;
      } else if (auto* aside = std::get_if<modules::StepAside>(&*output)) {
        if (aside->way == modules::Way::to_lan) {
          require(twin_steps_aside && !passes_to_lan && !lan_ended);
          passes_to_lan = true;
        } else {
          require(!steps_aside && !stream_ended);
          steps_aside = holds_rest = true;
          to_twin.push_back(*output);
        }
      } else {
        const auto* message = std::get_if<modules::ToTwin>(&*output);
        if (message && stream_ended) continue;  // dropped
        require(!stream_ended);
        // Behind stepping aside, nothing but what was held.
        require(!steps_aside || (holds_rest && std::holds_alternative<modules::ToStream>(*output)));
        if (message)
          require(!message->message.empty() && message->message.size() <= modules::kMaxTwinMessage);
        if (std::holds_alternative<modules::EndStream>(*output)) stream_ended = true;
        to_twin.push_back(std::move(*output));
      }
      require(held <= kMostHeld);
    }
  }
};

// One thing that is on its way between them. False: nothing is.
inline bool deliver(Watched& from, Watched& to, link::TimePoint now) {
  if (from.to_twin.empty() || from.aborted || to.aborted) return false;
  modules::Output output = std::move(from.to_twin.front());
  from.to_twin.pop_front();
  if (auto* raw = std::get_if<modules::ToStream>(&output)) {
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

}  // namespace longhaul::fuzz
