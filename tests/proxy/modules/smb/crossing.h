// SPDX-License-Identifier: Apache-2.0
// What one half of the SMB module has put out for the other, between halves without their framing
// (twin/half.h): frames, messages with what is attached to them, and the end, in order. Tests decide when the
// next one arrives.
#pragma once
#include <catch2/catch.hpp>
#include <deque>
#include <variant>

#include "proxy/modules/smb/twin_messages.h"
#include "proxy/modules/smb/half.h"

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
      } else if (auto* told = std::get_if<modules::ToTwin>(&*output)) {
        auto message = decode(told->message.bytes());
        REQUIRE(message.has_value());
        Slice attached;
        if (const std::uint32_t bytes = attached_bytes(*message)) {
          auto next = out.poll();
          REQUIRE(next.has_value());
          attached = std::get<modules::ToStream>(*next).bytes;
          REQUIRE(attached.size() == bytes);
        }
        items_.push_back(Told{std::move(*message), std::move(attached)});
      } else if (auto* frame = std::get_if<modules::ToStream>(&*output)) {
        items_.push_back(frame->bytes);
      } else if (std::holds_alternative<modules::EndStream>(*output)) {
        items_.push_back(End{});
      } else if (std::holds_alternative<modules::EndLan>(*output)) {
        end_lan();
      } else if (std::holds_alternative<modules::Abort>(*output)) {
        abort();
      }
    }
  }

  // The next one comes to `half`; `frame_of` makes a frame of its bytes.
  template <class Half, class FrameOf>
  void deliver(Half& half, modules::TimePoint now, FrameOf&& frame_of) {
    Item item = std::move(items_.front());
    items_.pop_front();
    if (auto* frame = std::get_if<Slice>(&item)) {
      half.frame_from_stream(now, frame_of(*frame));
    } else if (auto* told = std::get_if<Told>(&item)) {
      half.from_twin(now, told->message, told->attached);
    } else {
      half.stream_ended(now, modules::Ending::closed);
    }
  }

 private:
  struct Told {
    TwinMessage message;
    Slice attached;
  };
  struct End {};
  using Item = std::variant<Slice, Told, End>;

  std::deque<Item> items_;
};

}  // namespace longhaul::smb::testing
