// SPDX-License-Identifier: Apache-2.0
// A far half alone, where its parts must agree.
#include "proxy/modules/smb/smb2/far.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {
namespace {

using std::chrono_literals::operator""s;

constexpr FileId kFile{1, 1}, kLook{2, 2};

struct FarAlone {
  // With `credits` for the client's and our own requests.
  explicit FarAlone(std::uint16_t credits) {
    Surroundings surroundings;
    surroundings.features.metadata_relaxed = false;
    far.on_surroundings(now, surroundings);
    client(request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0}));
    server(Command::negotiate, 0, negotiate_answer_body(Dialect::smb_3_0_2), credits);
    client(request(Command::session_setup, 1, session_setup_request_body(), {.session = 0, .tree = 0}));
    server(Command::session_setup, 1, session_setup_answer_body());
    client(request(Command::tree_connect, 2, tree_connect_request_body(), {.tree = 0}));
    server(Command::tree_connect, 2, tree_connect_answer_body());
    client(create_request(3, "f", {.oplock = OplockLevel::batch}));
    server(Command::create, 3, create_answer_body({.file = kFile, .oplock = OplockLevel::batch}));
  }
  void client(const Message& message) {
    far.frame_from_stream(now, message.frame);
    collect();
  }
  void server(Command command, AnyId id, const Body& body, std::uint16_t credits = 0) {
    Header header = answer(command, id, body).header();
    header.credits = credits;
    far.frame_from_lan(now, message_of(build_message(header, body.bytes)).frame);
    collect();
  }
  // An answer whose header says that another one begins within it.
  void server_unparsable(Command command, AnyId id) {
    Header header = answer(command, id, empty_body()).header();
    header.next_command = 8;
    far.frame_from_lan(now, {FrameKind::smb2, build_message(header, empty_body().bytes)});
    collect();
  }
  void collect() {
    while (auto output = out.poll()) {
      if (auto* bytes = std::get_if<modules::ToLan>(&*output)) splitter.push(bytes->bytes);
      passed += std::holds_alternative<modules::ToStream>(*output);
      aborted |= std::holds_alternative<modules::Abort>(*output);
    }
    while (auto frame = splitter.next().value()) at_server.push_back(parse_message(*frame).value());
  }
  // The number of the last one; none: it never came.
  std::optional<MessageId> sent(Command command, const FileId& file) const {
    std::optional<MessageId> last;
    for (const Message& message : at_server) {
      const auto close = parse_close_request(message.first().bytes);
      if (message.header().command == command && close && close->file == file) last = message.header().message_id;
    }
    return last;
  }
  std::optional<MessageId> look() const {
    std::optional<MessageId> last;
    for (const Message& message : at_server) {
      const auto create = parse_create_request(message.first().bytes);
      if (message.header().command == Command::create && create &&
          create->desired_access == access::read_attributes)
        last = message.header().message_id;
    }
    return last;
  }

  TimePoint now{};
  Outputs out;
  Far far{out};
  FrameSplitter splitter{Framing::direct_tcp};
  std::vector<Message> at_server;
  std::size_t passed = 0;  // frames to the client
  bool aborted = false;
};

}  // namespace

TEST_CASE("where nothing can be sent any more, the CLOSE of a look at a file keeps no request waiting") {
  const bool before = GENERATE(false, true);  // the look is answered
  unsigned looks = 0, without_id = 0;
  for (std::uint16_t credits = 4; credits < 40; ++credits) {
    CAPTURE(before, credits);
    FarAlone alone(credits);
    alone.now += 1s;
    alone.far.on_timeout(alone.now);
    alone.collect();
    const auto look = alone.look();
    if (!look) continue;
    ++looks;
    // FLUSH and CLOSE are alike.
    alone.client(request(Command::flush, 4, flush_request_body(kFile)));
    REQUIRE_FALSE(alone.sent(Command::flush, kFile));
    const auto answer_look = [&] {
      alone.server(Command::create, *look, create_answer_body({.file = kLook}));
    };
    if (before) answer_look();
    const auto closing = alone.sent(Command::close, kLook);
    if (before && !closing) ++without_id;
    alone.far.stream_opaque(alone.now);
    alone.collect();
    if (!before) answer_look();
    if (closing) alone.server(Command::close, *closing, close_answer_body());
    CHECK(alone.sent(Command::flush, kFile));
    CHECK(alone.sent(Command::close, kLook) == closing);
    CHECK(alone.far.quiet());
  }
  CHECK(looks > 0);
  CHECK((without_id > 0) == before);
}

TEST_CASE("an unparsable response passes, but one to a request of ours ends the connection") {
  const bool ours = GENERATE(true, false);
  FarAlone alone(40);
  alone.now += 1s;
  alone.far.on_timeout(alone.now);
  alone.collect();
  const auto look = alone.look();
  REQUIRE(look);
  alone.client(request(Command::flush, 4, flush_request_body(kFile)));
  REQUIRE_FALSE(alone.sent(Command::flush, kFile));  // it waits for the look
  alone.client(request(Command::echo, 5, empty_body()));
  const std::size_t passed = alone.passed;
  if (ours) {
    alone.server_unparsable(Command::create, *look);
  } else {
    alone.server_unparsable(Command::echo, 5);
  }
  CHECK(alone.aborted == ours);
  CHECK((alone.passed == passed) == ours);
}

}  // namespace longhaul::smb::smb2::test
