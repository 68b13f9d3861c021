// SPDX-License-Identifier: Apache-2.0
// The near half's decisions about one message; told_test.cc has whole connections.
#include "proxy/modules/smb/smb2/near_losses.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/lone_near_side.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

struct Losing {
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(1);
  LoneNearSide side;
  LostFiles files{*lost, {}, [this]() -> Connection& { return side.tracked; }};
  NearLosses losses{side, lost, {}, files};

  Losing() {
    connect(side.tracked);
    const std::string path = utf16("\\\\server\\x");
    const Body body([&](auto& out) {
      out.u16(9), out.u16(0), out.u16(kHeaderBytes + 8), out.u16(static_cast<std::uint16_t>(path.size()));
      out.bytes(as_bytes(path));
    });
    const Message tree = request(Command::tree_connect, 3, body);
    side.tracked.on_request(tree);
    files.on_request(tree);
    const Message connected = answer(Command::tree_connect, 3, tree_connect_answer_body());
    files.on_outcome(side.tracked.on_response(connected));
    lost->add({.share = u"X", .path = u"LOST"}, {.cause = Cause::server_gone});
  }
  bool refuses(const Message& message) {
    side.tracked.on_request(message);
    return losses.refuses(TimePoint{}, message);
  }
};

}  // namespace

TEST_CASE("an open of a file that has lost writes is answered with the error, others are not") {
  Losing t;
  CHECK_FALSE(t.refuses(create_request(10, "kept")));
  CHECK(t.side.answered.empty());
  CHECK(t.refuses(create_request(11, "lost")));
  CHECK(t.side.answered == std::vector{11_message});
  CHECK_FALSE(t.side.aborts());
}

TEST_CASE("a loss stays on record until its error has arrived and the client goes on") {
  Losing t;
  REQUIRE(t.refuses(create_request(11, "lost")));
  t.losses.client_goes_on();
  CHECK(t.losses.has_records());
  t.losses.arrived(t.losses.awaited());
  CHECK(t.losses.has_records());
  t.losses.client_goes_on();
  CHECK_FALSE(t.losses.has_records());
  CHECK_FALSE(t.losses.any());
}

TEST_CASE("where nothing may be answered the client is reset, for a file with lost writes only") {
  Losing t;
  t.side.tracked.sessions().came_signed(kSession);
  CHECK_FALSE(t.refuses(create_request(10, "kept")));
  CHECK_FALSE(t.side.aborts());
  CHECK(t.refuses(create_request(11, "lost")));
  CHECK(t.side.answered.empty());
  CHECK(t.side.aborts());
}

TEST_CASE("a client that is not read is reset for all that it has lost") {
  Losing t;
  t.losses.goes_unread();
  CHECK(t.side.aborts());
  t.lost->forget({.share = u"X", .path = u"LOST"});
  t.losses.goes_unread();
  CHECK_FALSE(t.side.aborts());
}

TEST_CASE("a client that no guard reads is known for that while its connection lasts") {
  Losing t;
  CHECK_FALSE(t.lost->live().has_unguarded({}));
  {
    NearLosses other(t.side, t.lost, {}, t.files);
    other.goes_unguarded();
    CHECK(t.lost->live().has_unguarded({}));
  }
  CHECK_FALSE(t.lost->live().has_unguarded({}));
}

TEST_CASE("the far half hears that the client has read an error that passed") {
  Losing t;
  t.side.tracked.on_request(create_request(12, "elsewhere"));
  const Message failed = error(Command::create, 12, Status::lost_writebehind_data);
  t.losses.on_outcome(t.side.tracked.on_response(failed));
  t.losses.client_goes_on();
  CHECK(t.side.told().empty());
  t.losses.arrived(t.losses.awaited());
  t.losses.client_goes_on();
  CHECK(t.side.told().size() == 1);
}
