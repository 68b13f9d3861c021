// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/oplock_returns.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

struct Returning : Conversation {
  Outputs out;
  ServerLeg leg{out};
  OplockReturns returns{leg, connection};
  Open& file = open_batch("F");
  TimePoint now{};

  void broken(Oplock left = Oplock::none) {
    file.break_pending = true;
    returns.broken(now, file, left);
  }
  // The level to which it was given back; none: it was not.
  std::optional<unsigned> given_back() {
    returns.give_back();
    for (const Slice& frame : PutOut(out).to_lan) {
      const auto message = message_in(frame);
      if (const auto locking = parse_locking_request(message.first())) return locking->oplock_level;
    }
    return std::nullopt;
  }
};

TEST_CASE("SMB1: an oplock is given back when the near half has said that nothing more is promised") {
  Returning far;
  const Oplock left = GENERATE(Oplock::none, Oplock::level2);
  far.broken(left);
  CHECK_FALSE(far.given_back());
  CHECK_FALSE(far.returns.is_idle());
  far.returns.near_gives_back(far.file.key);
  CHECK(far.given_back() == (left == Oplock::level2 ? 1u : 0u));
  CHECK(far.file.oplock == left);
  CHECK_FALSE(far.file.break_pending);
  CHECK(far.returns.is_idle());
}

TEST_CASE("SMB1: an oplock is given back behind every promise under it") {
  Returning far;
  far.broken();
  far.returns.near_gives_back(far.file.key);
  far.leg.set_max_mpx(1);
  far.leg.send_promised(write(far.file.fid, 0, as_bytes("x"), 11), {Scope::Of::open, far.file.key, {}},
                        {.open = far.file.key, .range = {0, 1}},
                        [](const Message&) { return ServerLeg::Parts::last; });
  const std::vector<Slice> pieces = PutOut(far.out).to_lan;  // under an id of ours: in two
  REQUIRE(pieces.size() == 2);
  const Slice sent = Slice::joined(pieces[0].bytes(), pieces[1].bytes());
  CHECK_FALSE(far.given_back());
  far.server.receive(sent.bytes().subspan(kFrameHeadBytes));
  CHECK(far.leg.on_answer(message_in(far.server.out.back())));
  CHECK(far.given_back() == 0u);
}

TEST_CASE("SMB1: what the near half has given up in advance goes back at once, and nothing is kept of it") {
  Returning far;
  far.returns.near_gives_back(far.file.key);
  CHECK_FALSE(far.file.may_cache_reads());
  far.broken(Oplock::level2);
  CHECK(far.given_back() == 0u);
  CHECK(far.file.oplock == Oplock::none);
}

TEST_CASE("SMB1: nothing is said of a file that the client's CLOSE has ended: its FID may be another's") {
  Returning far;
  const Slice frame = close(far.file.fid, 12);
  const Message request = message_in(frame);
  far.broken();
  far.returns.near_gives_back(far.file.key);
  far.connection.on_request(request);
  far.leg.send(frame, number_of(request.header), true, {Scope::Of::closing, far.file.key, {}});
  REQUIRE(PutOut(far.out).to_lan.size() == 1);
  CHECK_FALSE(far.given_back());
  SECTION("until it is answered") {
    far.returns.closed(far.file.key);
    CHECK(far.returns.is_idle());
  }
  SECTION("unless it is refused") {
    far.connection.answered_here(number_of(request.header));
    CHECK(far.given_back() == 0u);
  }
}

TEST_CASE("SMB1: a near half that is over, or a file that is closed, is not waited for") {
  Returning far;
  SECTION("over before the break") {
    far.returns.near_is_over();
    far.broken();
    CHECK(far.given_back() == 0u);
  }
  SECTION("over after it") {
    far.broken();
    far.returns.near_is_over();
    CHECK(far.given_back() == 0u);
  }
  SECTION("closed: its CLOSE gives back everything") {
    far.broken();
    far.returns.closed(far.file.key);
    CHECK_FALSE(far.given_back());
  }
  CHECK(far.returns.is_idle());
  CHECK_FALSE(far.returns.is_late(far.now + 2 * kOplockFence));
}

TEST_CASE("SMB1: a near half that is silent about a writer's oplock for too long is late, once") {
  Returning far;
  const bool may_write = GENERATE(false, true);
  far.file.may_write = may_write;
  far.broken();
  CHECK(far.returns.next_timeout().has_value() == may_write);
  CHECK_FALSE(far.returns.is_late(far.now + kOplockFence - std::chrono::milliseconds(1)));
  CHECK(far.returns.is_late(far.now + kOplockFence) == may_write);
  CHECK_FALSE(far.returns.is_late(far.now + kOplockFence));
  CHECK_FALSE(far.returns.next_timeout());
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
