// SPDX-License-Identifier: Apache-2.0
// A client and a server whose messages one connection sees, and what parts of a half put out: for tests of
// single parts. pair.h has both halves.
#pragma once
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/server.h"

namespace longhaul::smb::smb1::testing {

inline Frame frame_of(const Slice& bytes) { return {FrameKind::smb1, bytes}; }
// With the frame that it borrows from.
struct KeptMessage : Message {
  Slice frame;
};
inline KeptMessage message_in(const Slice& frame) {
  return {*parse_message(frame.bytes().subspan(kFrameHeadBytes)), frame};
}

class Conversation {
 public:
  Connection connection;
  Server server;

  Conversation() {
    for (const Slice& frame : {negotiate(), session_setup(), tree_connect()}) (void)exchange(frame);
  }
  // A request of the client that the server does not get yet.
  void ask(const Slice& frame) { connection.on_request(message_in(frame)); }
  // It gets it, and answers.
  Connection::Answered answer(const Slice& frame) {
    server.receive(frame.bytes().subspan(kFrameHeadBytes));
    REQUIRE_FALSE(server.out.empty());
    const Slice reply = std::move(server.out.front());
    server.out.pop_front();
    return connection.on_reply(message_in(reply));
  }
  Connection::Answered exchange(const Slice& frame) {
    ask(frame);
    return answer(frame);
  }
  // Opens a file that may be there already.
  Open& open(const std::string& name, std::uint16_t mid = 100, CreateOptions options = {.disposition = 3}) {
    const auto answered = exchange(create(name, mid, options));
    REQUIRE(answered.opened);
    return *answered.opened;
  }
  // Under a batch oplock.
  Open& open_batch(const std::string& name, std::uint16_t mid = 100) {
    return open(name, mid, {.flags = 6, .disposition = 3});
  }
};

// Everything that was put out since the last time.
struct PutOut {
  std::vector<Slice> to_lan, passed;
  std::vector<TwinMessage> told;
  bool aborted = false;

  explicit PutOut(Outputs& out) {
    while (auto output = out.poll()) {
      if (auto* lan = std::get_if<modules::ToLan>(&*output)) to_lan.push_back(lan->bytes);
      if (auto* stream = std::get_if<modules::ToStream>(&*output)) passed.push_back(stream->bytes);
      if (auto* twin = std::get_if<modules::ToTwin>(&*output)) told.push_back(*decode(twin->message.bytes()));
      if (std::holds_alternative<modules::Abort>(*output)) aborted = true;
    }
  }
  template <class Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> found;
    for (const TwinMessage& message : told)
      if (const auto* kind = std::get_if<Kind>(&message)) found.push_back(*kind);
    return found;
  }
};

}  // namespace longhaul::smb::smb1::testing
