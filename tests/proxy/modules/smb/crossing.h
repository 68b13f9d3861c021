// SPDX-License-Identifier: Apache-2.0
// What one half of the SMB module has put out for the other, between halves without their framing
// (twin/half.h): frames, messages with what is attached to them, and the end, in order. Tests decide when the
// next one arrives.
#pragma once
#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb::testing {

class Crossing {
 public:
  bool empty() const { return items_.empty(); }

  // Everything that `out` has; what goes to the LAN is the caller's: bytes, the end, and a reset of both
  // connections.
  template <class ToLan, class EndLan, class Abort>
  void take(Outputs& out, ToLan&& to_lan, EndLan&& end_lan, Abort&& abort) {
    while (auto output = out.poll()) {
      if (auto* lan = std::get_if<modules::ToLan>(&*output)) {
        to_lan(lan->bytes);
      } else if (std::holds_alternative<modules::EndLan>(*output)) {
        end_lan();
      } else if (std::holds_alternative<modules::Abort>(*output)) {
        abort();
      } else {
        items_.push_back(std::move(*output));
      }
    }
  }

  // One comes to `half`; `frame_of` makes a frame of its bytes. True: it was a message that waits for what is
  // attached to it, which comes next.
  template <class Half, class FrameOf>
  bool deliver(Half& half, modules::TimePoint now, FrameOf&& frame_of) {
    const modules::Output item = std::move(items_.front());
    items_.pop_front();
    if (auto* told = std::get_if<modules::ToTwin>(&item)) {
      auto message = decode(told->message.bytes());
      REQUIRE(message.has_value());
      if (attached_bytes(*message) != 0) {
        waits_ = std::move(*message);
      } else {
        half.from_twin(now, *message, {});
      }
    } else if (auto* raw = std::get_if<modules::ToStream>(&item)) {
      if (waits_) {
        REQUIRE(raw->bytes.size() == attached_bytes(*waits_));
        half.from_twin(now, *std::exchange(waits_, std::nullopt), raw->bytes);
      } else {
        half.frame_from_stream(now, frame_of(raw->bytes));
      }
    } else if (std::holds_alternative<modules::EndStream>(item)) {
      half.stream_ended(now, modules::Ending::closed);
    }
    return waits_.has_value();
  }

 private:
  std::deque<modules::Output> items_;
  std::optional<TwinMessage> waits_;
};

// The messages in what a half, or one of its parts, has put out.
inline std::vector<TwinMessage> messages_in(Outputs& out) {
  std::vector<TwinMessage> messages;
  while (const auto output = out.poll()) {
    if (const auto* message = std::get_if<modules::ToTwin>(&*output)) {
      auto decoded = decode(message->message.bytes());
      REQUIRE(decoded.has_value());
      messages.push_back(std::move(*decoded));
    }
  }
  return messages;
}

}  // namespace longhaul::smb::testing
