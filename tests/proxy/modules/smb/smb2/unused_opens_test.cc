// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/unused_opens.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/lone_far_side.h"

namespace longhaul::smb::smb2::test {
namespace {

constexpr UnusedOpens::Handle kUnused{.session = kSession, .tree = kTree, .file = {1, 2}, .bytes = 10};

}  // namespace

TEST_CASE("requests wait for an unused open until the server has closed it") {
  LoneFarSide side;
  UnusedOpens unused(side);
  side.hold_behind(7, {});
  unused.close({}, 7, kUnused);
  REQUIRE(side.sent.size() == 1);
  CHECK(side.sent.front().request.header().command == Command::close);
  CHECK(parse_close_request(side.sent.front().request.first().bytes).value().file == kUnused.file);
  CHECK(unused.has(kUnused.file));
  CHECK(unused.bytes() == 10);
  CHECK(side.held.contains(7));
  side.answer_first({}, close_answer_body());
  CHECK(side.held.empty());
  CHECK_FALSE(unused.has(kUnused.file));
  CHECK(unused.size() == 0);
}

TEST_CASE("the CLOSE of an unused open that found no id is sent when ids are free, once") {
  LoneFarSide side;
  UnusedOpens unused(side);
  side.free_ids = 0;
  side.hold_behind(7, {});
  unused.close({}, 7, kUnused);
  unused.on_ids_freed({});
  CHECK(side.sent.empty());
  CHECK(side.held.contains(7));
  side.free_ids = 5;
  unused.on_ids_freed({});
  unused.on_ids_freed({});
  CHECK(side.sent.size() == 1);
}

TEST_CASE("when a session is signed, requests wait only for CLOSEs that were sent") {
  LoneFarSide side;
  UnusedOpens unused(side);
  side.free_ids = 1;
  side.hold_behind(7, {});
  side.hold_behind(8, {});
  unused.close({}, 7, kUnused);
  unused.close({}, 8, {.session = kSession, .tree = kTree, .file = {3, 4}});
  unused.let_go_of_unsent({});
  CHECK(side.held == std::set<std::uint64_t>{7, 8});
  side.connection().on_request(
      request(Command::flush, 9, flush_request_body({1, 2}), {.flags = header_flags::is_signed}));
  REQUIRE(side.connection().sessions().any_untouchable());
  unused.let_go_of_unsent({});
  CHECK(side.held == std::set<std::uint64_t>{7});
}

}  // namespace longhaul::smb::smb2::test
