// SPDX-License-Identifier: Apache-2.0
// Which numbers the client's requests get at the server if the module has used theirs.
#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/far.h"
#include "tests/proxy/modules/smb/smb2/pair.h"

namespace longhaul::smb::smb2::test {
namespace {

// The far half alone, after a login, with a file that it reads ahead.
struct FarAlone {
  FarAlone() {
    far.seals();
    far.on_surroundings(now, Pair::usual());
    exchange(request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0}),
             answer(Command::negotiate, 0, negotiate_answer_body(Dialect::smb_2_1), Status::success,
                    {.charge = 30}));
    far.from_twin(now, Allowance{1 << 24}, {});
    exchange(request(Command::session_setup, 1, session_setup_request_body(), {.session = 0, .tree = 0}),
             answer(Command::session_setup, 1, session_setup_answer_body()));
    exchange(request(Command::tree_connect, 2, tree_connect_request_body(), {.tree = 0}),
             answer(Command::tree_connect, 2, tree_connect_answer_body()));
    exchange(
        create_request(3, "file", {.oplock = OplockLevel::batch}),
        answer(Command::create, 3,
               create_answer_body({.file = {1, 2}, .oplock = OplockLevel::batch, .end_of_file = 1 << 20})));
    for (const Message& message : sent())
      if (message.header().command == Command::read) own.push_back(message.header().message_id);
    REQUIRE_FALSE(own.empty());
  }
  void exchange(const Message& asked, const Message& answered) {
    far.frame_from_stream(now, asked.frame);
    far.frame_from_lan(now, answered.frame);
  }
  // By what went to the server since the last call.
  std::vector<Message> sent() {
    while (auto output = out.poll()) {
      if (auto* bytes = std::get_if<modules::ToLan>(&*output)) splitter.push(bytes->bytes);
      aborted = aborted || std::holds_alternative<modules::Abort>(*output);
    }
    std::vector<Message> messages;
    while (auto frame = splitter.next().value()) messages.push_back(parse_message(*frame).value());
    return messages;
  }
  TimePoint now{};
  Outputs out;
  Far far{out};
  FrameSplitter splitter{Framing::direct_tcp};
  std::vector<MessageId> own;
  bool aborted = false;
};

Message login(MessageId id, std::uint32_t marks) {
  return request(Command::session_setup, id, session_setup_request_body(), {.flags = marks});
}

}  // namespace

TEST_CASE("SMB2: logging in again, in a session with keys, goes on where the module has used its number") {
  FarAlone alone;
  const MessageId id = alone.own.front();
  alone.far.frame_from_stream(alone.now, login(id, kArrivalFlags).frame);
  const auto sent = alone.sent();
  REQUIRE(sent.size() == 1);
  CHECK_FALSE(alone.aborted);
  CHECK(sent[0].header().command == Command::session_setup);
  CHECK(sent[0].header().message_id != id);
  CHECK(std::ranges::find(alone.own, sent[0].header().message_id) == alone.own.end());
  // And the client gets its answer.
  alone.far.frame_from_lan(
      alone.now,
      answer(Command::session_setup, sent[0].header().message_id, session_setup_answer_body()).frame);
  bool is_answered = false;
  while (auto output = alone.out.poll())
    if (auto* frame = std::get_if<modules::ToStream>(&*output))
      is_answered |= message_of(frame->bytes).header().message_id == id;
  CHECK(is_answered);
}

TEST_CASE("SMB2: a first login, which both sides hash, cannot get another number") {
  FarAlone alone;
  alone.far.frame_from_stream(alone.now, login(alone.own.front(), 0).frame);
  CHECK(alone.sent().empty());
  CHECK(alone.aborted);
}

}  // namespace longhaul::smb::smb2::test
