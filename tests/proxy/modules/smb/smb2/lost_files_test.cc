// SPDX-License-Identifier: Apache-2.0
// The names under which lost writes are recorded and reported: renames, streams, spellings and DFS names.
#include "proxy/modules/smb/smb2/lost_files.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/visit.h"

namespace longhaul::smb::smb2::model {

using std::chrono::milliseconds;

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

TEST_CASE("the files of a folder keep their records if a compound opens, renames and closes it") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  visit.server.files["d"] = "";
  visit.server.joins_answers = GENERATE(false, true);
  lost->add({.share = u"X", .path = u"D\\F"}, {.cause = Cause::server_gone});
  const auto [create, rename] = visit.send_create_and_rename("d", true);
  CHECK(visit.status(create) == Status::success);
  visit.settle();
  CHECK(visit.server.done[Command::close] == 1);
  (void)rename;
  CHECK(lost->has_record({.share = u"X", .path = u"Y\\F"}));
  CHECK(lost->waiting() == 1);
}

TEST_CASE("nothing more is promised to a client that asks for more renames at a time than are followed") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId a = visit.open("a"), other = visit.open("b");
  CHECK(visit.promises(a, "1"));
  visit.settle();
  visit.server_idle = true;
  for (int i = 0; i < 513; ++i) visit.send_rename(other);
  visit.server_idle = false;
  visit.settle();
  CHECK_FALSE(visit.promises(a, "2"));
  Visit next(lost, std::make_shared<LostWrites>());
  CHECK_FALSE(next.promises(next.open("b"), "1"));
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
