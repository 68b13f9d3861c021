// SPDX-License-Identifier: Apache-2.0
// Which requests are answered with the error for lost writes, and when the client has read it
// (near_writes.h, far_losses.h, lost_files.h).
#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/visit.h"

namespace longhaul::smb::smb2::model {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE(
    "a file with lost writes is not renamed or linked, once: a program does that when it has finished") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  const LostWrites::File a{.share = u"X", .path = u"A"}, y{.share = u"X", .path = u"Y"};
  half->add(a, {.cause = Cause::server_gone});
  half->add(y, {.cause = Cause::server_gone});
  Visit visit(lost, far);
  const auto file = visit.create("a", Disposition::open, kNone, 0, 0x10080);
  REQUIRE(file);
  visit.settle();
  SECTION("renamed") {
    CHECK(visit.status(visit.send_rename(*file)) == Status::lost_writebehind_data);
    CHECK(half->has_record(a));  // it may not have been read yet
  }
  SECTION("linked") {
    Buffer information(20);
    information[16] = std::byte{2};
    append(information, as_bytes("y\0"));
    information.resize(24);
    CHECK(visit.status(visit.send_set_info(*file, file_info::link, information)) ==
          Status::lost_writebehind_data);
  }
  CHECK(visit.server.files.contains("a"));
  CHECK(visit.status(visit.send_rename(*file)) == Status::success);
  visit.settle();
  CHECK_FALSE(half->has_record(a));
  CHECK(half->waiting() == 0);  // what was replaced has nothing left to tell
}

TEST_CASE("a rename waits for what an older connection of the client owes of the file") {
  const auto lost = near_daemon(1);
  Visit old(lost, std::make_shared<LostWrites>()), visit(lost, std::make_shared<LostWrites>());
  const FileId a = old.open("a");
  const auto file = visit.create("a", Disposition::open, kNone, 0, 0x10080);
  REQUIRE(file);
  visit.settle();
  old.server_idle = true;
  REQUIRE(old.status(old.send_write(a, 0, "new")) == Status::success);
  const MessageId rename = visit.send_rename(*file);
  visit.settle();
  CHECK_FALSE(visit.answers.contains(rename));
  visit.pass(seconds(6));
  CHECK(visit.status(rename) == Status::lost_writebehind_data);
}

TEST_CASE("a compound that opens or renames a file with lost writes fails as a whole") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  half->add({.share = u"X", .path = u"A"}, {.cause = Cause::server_gone});
  Visit visit(lost, far);
  const bool renames = GENERATE(false, true);
  const auto send = [&] {
    return renames ? visit.send_create_and_rename("a") : visit.send_create_and_query("a");
  };
  const auto [create, other] = send();
  CHECK(visit.status(create) == Status::lost_writebehind_data);
  CHECK(visit.status(other) == Status::lost_writebehind_data);
  visit.settle();
  CHECK(half->waiting() == 1);
  const auto [again, behind] = send();
  CHECK(visit.status(again) == Status::success);
  CHECK(half->waiting() == 0);
  (void)behind;
}

TEST_CASE("what waited behind an open was sent before its error, which may not have been read") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  {
    Visit old(lost, far), visit(lost, far);
    const FileId a = old.open("a");
    old.server_idle = true;
    REQUIRE(old.status(old.send_write(a, 0, "new")) == Status::success);
    const MessageId create = visit.send_create("a", Disposition::open, kNone);
    const MessageId behind = visit.send_create("b", Disposition::open, kNone);
    old.server_ends();
    old.settle();
    old.near().twin_lost();
    visit.pass(milliseconds(50));
    visit.settle();
    CHECK(visit.status(create) == Status::lost_writebehind_data);
    CHECK(visit.status(behind) == Status::success);
    visit.client_ends(modules::Ending::reset);
    visit.settle();
  }
  Visit visit(lost, far);
  CHECK(visit.opens("a") == Status::lost_writebehind_data);
  CHECK(visit.opens("a") == Status::success);
}

TEST_CASE("what was on its way to the far half when that sent an error does not count as having read it") {
  const auto far = std::make_shared<LostWrites>();
  far->add({.share = u"X", .path = u"A"}, {.cause = Cause::near_vanished, .near = 9});
  {
    Visit visit(near_daemon(1), far);
    const MessageId create = visit.send_create("a", Disposition::open, kNone);
    const MessageId behind = visit.send_create("b", Disposition::open, kNone);
    CHECK(visit.status(create) == Status::lost_writebehind_data);
    CHECK(visit.status(behind) == Status::success);
    visit.client_ends(modules::Ending::reset);
    visit.settle();
  }
  Visit visit(near_daemon(1), far);
  CHECK(visit.opens("a") == Status::lost_writebehind_data);
  CHECK(visit.opens("b") == Status::success);
  CHECK(visit.opens("a") == Status::success);
}

TEST_CASE("nothing is promised while a rename is without an answer") {
  Visit visit(near_daemon(1), std::make_shared<LostWrites>());
  const FileId a = visit.open("a"), b = visit.open("b");
  REQUIRE(visit.promises(b, "1"));
  visit.settle();
  visit.server_idle = true;
  const MessageId rename = visit.send_rename(a);
  CHECK_FALSE(visit.promises(a, "x"));
  CHECK_FALSE(visit.promises(b, "x"));
  visit.server_idle = false;
  CHECK(visit.status(rename) == Status::success);
  visit.settle();
  CHECK(visit.promises(b, "y"));
}

TEST_CASE("nothing is promised to a client with a connection that no guard reads") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId a = visit.open("a");
  lost->enter_unguarded({.server_port = 445});
  CHECK_FALSE(visit.promises(a, "1"));
  CHECK(visit.near().reason() == smb::reasons::smb_other_paths);
  visit.settle();
  lost->leave_unguarded({.server_port = 445});
  CHECK(visit.promises(a, "2"));
}

}  // namespace longhaul::smb::smb2::model
