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
  CHECK(half->waiting() == 1);
  CHECK(half->counters().reported[static_cast<std::size_t>(Told::reset)] == 1);
}

TEST_CASE("an encrypted request may open any file: its client is reset, once, for what it loses elsewhere") {
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
  CHECK(lost->waiting() == 0);
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
  CHECK(lost->has_unguarded({.server_port = 445}));
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
  lost->enter_unguarded({.server_port = 445});
  const auto made = visit.near().writes().audit().made;
  visit.server_idle = false;
  CHECK(visit.status(held) == Status::success);
  CHECK(visit.near().writes().audit().made == made);
  lost->leave_unguarded({.server_port = 445});
}

TEST_CASE("the files of a folder that another connection renames keep their records") {
  const auto lost = near_daemon(1), far = std::make_shared<LostWrites>();
  Visit old(lost, far), visit(lost, far);
  old.server.files["d\\f"] = "old";
  visit.server.files["d"] = "";
  const FileId f = old.open("d\\f");
  const auto folder = visit.create("d", Disposition::open, kNone, 0, 0x10080);
  REQUIRE(folder);
  visit.settle();
  SECTION("what was promised before is kept first") {
    old.server_idle = true;
    REQUIRE(old.status(old.send_write(f, 0, "new")) == Status::success);
    const MessageId rename = visit.send_rename(*folder);
    visit.settle();
    CHECK_FALSE(visit.answers.contains(rename));
    old.server_idle = false;
    old.settle();
    visit.pass(milliseconds(50));
    CHECK(visit.status(rename) == Status::success);
  }
  SECTION("nothing is promised meanwhile") {
    visit.server_idle = true;
    const MessageId rename = visit.send_rename(*folder);
    visit.settle();
    CHECK_FALSE(old.promises(f, "x"));
    visit.server_idle = false;
    CHECK(visit.status(rename) == Status::success);
  }
  SECTION("what is promised then has the new name") {
    CHECK(visit.status(visit.send_rename(*folder)) == Status::success);
    old.settle();
    old.pass(milliseconds(100));
    old.switch_metadata(true);  // the far half says again what it has marked
    old.settle();
    old.server_idle = true;
    REQUIRE(old.status(old.send_write(f, 0, "new")) == Status::success);
    if (GENERATE(false, true)) {
      old.near_fails();
      CHECK(far->has_record({.share = u"X", .path = u"Y\\F"}));
      CHECK_FALSE(far->has_record({.share = u"X", .path = u"D\\F"}));
    } else {
      old.server_ends();
      old.settle();
      CHECK(lost->has_record({.share = u"X", .path = u"Y\\F"}));
      CHECK_FALSE(lost->has_record({.share = u"X", .path = u"D\\F"}));
    }
  }
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

TEST_CASE("what is done to a stream neither ends the record of its file nor tells of it") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  const LostWrites::File a{.share = u"X", .path = u"A"};
  half->add(a, {.cause = Cause::server_gone});
  Visit visit(lost, far);
  visit.server.files["a:s"] = visit.server.files["a::$DATA"] = "old";
  CHECK(visit.opens("a:s", Disposition::overwrite_if) == Status::success);
  const FileId stream = visit.open("a:s");
  CHECK(visit.status(visit.send_end_of_file(stream, 0)) == Status::success);
  CHECK(visit.status(visit.send_rename(stream)) == Status::success);
  const auto deleting = visit.create("a:s", Disposition::open, kNone, create_options::delete_on_close);
  REQUIRE(deleting);
  CHECK(visit.status(visit.send_close(*deleting)) == Status::success);
  visit.settle();
  CHECK(half->has_record(a));
  CHECK(visit.opens("a::$DATA") == Status::lost_writebehind_data);
  CHECK(visit.opens("a") == Status::success);
}

TEST_CASE("a file whose content was renamed to a stream keeps its name in records") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId a = visit.open("a");
  Buffer information;
  LittleEndianWriter w(information);
  w.zeros(16), w.u32(8), w.u16(':'), w.u16('n'), w.u16('e'), w.u16('w');
  REQUIRE(visit.status(visit.send_set_info(a, file_info::rename, information)) == Status::success);
  visit.settle();
  lost->add({.share = u"X", .path = u"A"}, {.cause = Cause::server_gone});
  CHECK(visit.status(visit.send_rename(a)) == Status::lost_writebehind_data);
}

TEST_CASE("nothing is promised through a stream") {
  Visit visit(near_daemon(1), std::make_shared<LostWrites>());
  visit.server.files["a:s"] = visit.server.files["a::$DATA"] = "old";
  const std::string_view name = GENERATE("a:s", "a::$DATA");
  CHECK(visit.promises(visit.open(name), "x") == (name == "a::$DATA"));
}

TEST_CASE("a file of another spelling is told, and does not end the record: on some servers it is another") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  Visit visit(lost, far);
  visit.server.files["A"] = "old";
  {
    Visit old(lost, far);
    const FileId a = old.open("a");
    REQUIRE(old.promises(a, "new"));
    old.near().twin_lost();
  }
  REQUIRE(lost->waiting() == 1);
  CHECK(lost->records().front().file.spelled == u"a");
  CHECK(visit.opens("A", Disposition::overwrite_if) == Status::success);
  CHECK(visit.opens("A") == Status::lost_writebehind_data);
  CHECK(visit.opens("A") == Status::success);
  CHECK(visit.opens("a") == Status::lost_writebehind_data);
  CHECK(visit.opens("a") == Status::success);
  CHECK(lost->waiting() == 0);
}

TEST_CASE("a TREE_CONNECT that is refused renames no tree") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  half->add({.share = u"X", .path = u"A"}, {.cause = Cause::server_gone});
  Visit visit(lost, far);
  visit.server.failing[Command::tree_connect] = Status::access_denied;
  const MessageId refused =
      visit.send({.credit_charge = 1, .command = Command::tree_connect, .tree_id = kTree},
                 [](LittleEndianWriter& w) { w.u16(9), w.u16(0), w.u16(72), w.u16(2), w.u16('y'); });
  REQUIRE(visit.status(refused) == Status::access_denied);
  CHECK(visit.opens("a") == Status::lost_writebehind_data);
}

TEST_CASE("a file is recorded by its name in its share, also if it was opened by a DFS name") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const std::string name = GENERATE("s\\x\\a", "\\\\.\\a");
  {
    Visit visit(lost, far);
    visit.server.files[name] = "old";
    const std::string wide = utf16(name);
    const auto flags = name[0] == 's' ? header_flags::dfs : 0u;
    const auto file = visit.opened(visit.send(
        {.credit_charge = 1, .command = Command::create, .flags = flags}, [&](LittleEndianWriter& w) {
          w.u16(57), w.u8(0), w.u8(0), w.u32(2), w.u64(0), w.u64(0), w.u32(0x1F01FF), w.u32(0x80), w.u32(7);
          w.u32(1), w.u32(0), w.u16(120), w.u16(static_cast<std::uint16_t>(wide.size())), w.u64(0);
          w.bytes(as_bytes(wide));
        }));
    REQUIRE(file);
    visit.settle();
    REQUIRE(visit.promises(*file, "new"));
    visit.near().twin_lost();
  }
  CHECK(lost->has_record({.share = u"X", .path = u"A"}));
  Visit visit(lost, far);
  CHECK(visit.opens("a") == Status::lost_writebehind_data);
}

}  // namespace longhaul::smb::smb2::model
