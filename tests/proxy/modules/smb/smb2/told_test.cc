// SPDX-License-Identifier: Apache-2.0
// Which requests are answered with the error for lost writes, and when the client has read it
// (near_losses.h, far_losses.h, lost_files.h).
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

TEST_CASE("what a client had sent before an error came to its host does not count as having read it") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  const LostWrites::File a{.share = u"X", .path = u"A"};
  half->add(a, {.cause = Cause::near_vanished, .near = half == far ? 9u : 0u});
  Visit visit(lost, far);
  visit.client_acknowledges = false;
  CHECK(visit.opens("a") == Status::lost_writebehind_data);
  CHECK(visit.opens("b") == Status::success);
  visit.settle();
  CHECK(half->has_record(a));
  SECTION("and it is told again, if it returns") {
    visit.client_ends(GENERATE(modules::Ending::reset, modules::Ending::closed));
    visit.settle();
    Visit again(near_daemon(half == far ? 2 : 1), far);
    if (half == far) CHECK(again.opens("a") == Status::lost_writebehind_data);
    CHECK(half->has_record(a));
  }
  SECTION("unlike what it sends then") {
    visit.client_acknowledges = true;
    visit.pass(milliseconds(1));
    CHECK(visit.opens("b") == Status::success);
    visit.settle();
    CHECK_FALSE(half->has_record(a));
  }
}

TEST_CASE("a client whose session has expired is told all the same") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId b = visit.open("b");
  visit.server.failing[Command::flush] = Status::network_session_expired;
  CHECK(visit.status(visit.send_flush(b)) == Status::network_session_expired);
  visit.server.failing.clear();
  lost->add({.share = u"X", .path = u"A"}, {.cause = Cause::refused});
  REQUIRE(visit.wait(visit.send_session_setup()));
  CHECK(visit.opens("a") == Status::lost_writebehind_data);
  CHECK(visit.opens("a") == Status::success);
  CHECK(lost->waiting() == 0);
  CHECK_FALSE(visit.aborted);
}

TEST_CASE("a client that signs is reset when it goes on with a file that has lost writes, and not before") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  half->add({.share = u"X", .path = u"A"}, {.cause = Cause::server_gone});
  half->add({.share = u"X", .path = u"C"}, {.cause = Cause::server_gone});
  Visit visit(lost, far);
  visit.request_flags = header_flags::is_signed;
  CHECK(visit.opens("b") == Status::success);
  CHECK_FALSE(visit.aborted);
  visit.send_create("a", Disposition::open, kNone);
  visit.settle();
  CHECK(visit.aborted);
  CHECK(half->events().counters().reported[static_cast<std::size_t>(Told::reset)] == 1);
}

TEST_CASE("an encrypted request may open any file: its client is reset for what it loses elsewhere") {
  const auto lost = near_daemon(1);
  Visit other(lost, std::make_shared<LostWrites>());
  const FileId b = other.open("b");
  const auto encrypted = [](World& visit) {
    visit.near().frame_from_lan(visit.now, Frame{FrameKind::smb2_transform, Slice::copy_of(as_bytes("\xFDSMB"))});
    visit.pass(milliseconds(0));
  };
  World visit(5, lost);  // nothing is opened on it, and it stays
  REQUIRE(visit.connect());
  encrypted(visit);
  CHECK_FALSE(visit.aborted);
  CHECK(visit.near().leave_alone() == smb::reasons::optimised);
  CHECK(visit.near().reason() == smb::reasons::smb_encrypted);
  CHECK(other.promises(b, "1"));
  lost->add({.share = u"X", .path = u"A"}, {.cause = Cause::server_gone});
  encrypted(visit);
  CHECK(visit.aborted);
  CHECK(lost->events().counters().reported[static_cast<std::size_t>(Told::reset)] == 1);
}

TEST_CASE("a half gives up a connection for want of memory only when it owes its client nothing") {
  using Leave = Near::Leave;
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId a = visit.open("a");
  visit.server_idle = true;
  REQUIRE(visit.status(visit.send_write(a, 0, "new")) == Status::success);
  CHECK(visit.near().gives_up() == Leave::later);
  CHECK_FALSE(visit.promises(a, "more"));  // or it would last for ever
  SECTION("kept") {
    visit.server_idle = false;
    visit.settle();
    CHECK(visit.near().gives_up() == Leave::now);
  }
  SECTION("nor while another connection of its client owes something") {
    visit.server_idle = false;
    visit.settle();
    Visit other(lost, std::make_shared<LostWrites>());
    const FileId b = other.open("b");
    other.server_idle = true;
    REQUIRE(other.status(other.send_write(b, 0, "new")) == Status::success);
    CHECK(visit.near().gives_up() == Leave::later);
    other.server_ends();
    other.settle();
    CHECK(visit.near().gives_up() == Leave::never);
    CHECK(lost->waiting() == 1);
  }
}

TEST_CASE("a connection that can be parsed no more is reset if its client is owed anything") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId a = visit.open("a");
  const bool owes = GENERATE(false, true);
  visit.server_idle = true;
  if (owes) REQUIRE(visit.status(visit.send_write(a, 0, "new")) == Status::success);
  visit.near().lan_opaque(visit.now);
  visit.pass(milliseconds(0));
  CHECK(visit.aborted == owes);
  CHECK(lost->live().has_unguarded({.server_port = 445}));
}

TEST_CASE("what waits for room is not promised once a connection of its client is not read") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId a = visit.open("a"), b = visit.open("b");
  visit.server_idle = true;
  const std::string much(1'000'000, 'x');  // half of what this line drains within the bound
  REQUIRE(visit.status(visit.send_write(a, 0, much)) == Status::success);
  REQUIRE(visit.status(visit.send_write(a, much.size(), much)) == Status::success);
  const MessageId held = visit.send_write(b, 0, much);
  visit.settle();
  REQUIRE_FALSE(visit.answers.contains(held));
  lost->live().enter_unguarded({.server_port = 445});
  const auto made = visit.near().writes().audit().made;
  visit.server_idle = false;
  CHECK(visit.status(held) == Status::success);
  CHECK(visit.near().writes().audit().made == made);
  lost->live().leave_unguarded({.server_port = 445});
}

TEST_CASE(
    "a far half resets what it cannot read if the client has to be told, and the near daemon does not know") {
  const auto far = std::make_shared<LostWrites>();
  const bool knows = GENERATE(false, true);
  const std::uint64_t before = 7;
  far->add({.share = u"X", .path = u"A"}, {.cause = Cause::near_vanished, .near = before});
  Visit visit(near_daemon(knows ? before : 8), far);
  (void)visit.create("b", Disposition::open, kNone);  // the near daemon says who it is
  std::string encrypted = std::string("\xFDSMB") + std::string(60, '\0');
  std::byte front[kFrameHeadBytes];
  write_frame_head(encrypted.size(), front);
  visit.near().frame_from_lan(visit.now,
                              Frame{FrameKind::smb2_transform, Slice::joined(front, as_bytes(encrypted))});
  visit.settle();
  CHECK(visit.aborted == !knows);
  CHECK(far->events().counters().reported[static_cast<std::size_t>(Told::reset)] == (knows ? 0 : 1));
}

TEST_CASE(
    "a far half that cannot read its server any more still records what may have been promised, and answers "
    "nothing") {
  const auto far = std::make_shared<LostWrites>();
  Visit visit(near_daemon(1), far);
  const FileId a = visit.open("a");
  visit.server_idle = true;
  REQUIRE(visit.status(visit.send_write(a, 0, "1")) == Status::success);
  visit.settle();
  SECTION("the near daemon fails") {
    visit.link_cut = true;
    visit.send_write(a, 1, "2");
    visit.far().lan_opaque(visit.now);
    visit.far().twin_lost();
    CHECK(far->has_record({.share = u"X", .path = u"A"}));
  }
  SECTION("the client goes on with a file that has lost writes") {
    far->add({.share = u"X", .path = u"B"}, {.cause = Cause::near_vanished, .near = 9});
    visit.far().lan_opaque(visit.now);
    const MessageId create = visit.send_create("b", Disposition::open, kNone);
    visit.settle();
    CHECK(visit.aborted);
    CHECK_FALSE(visit.answers.contains(create));
  }
}

TEST_CASE("nothing is promised to a client with a connection that no guard reads") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId a = visit.open("a");
  lost->live().enter_unguarded({.server_port = 445});
  CHECK_FALSE(visit.promises(a, "1"));
  CHECK(visit.near().reason() == smb::reasons::smb_other_paths);
  visit.settle();
  lost->live().leave_unguarded({.server_port = 445});
  CHECK(visit.promises(a, "2"));
}

}  // namespace longhaul::smb::smb2::model
