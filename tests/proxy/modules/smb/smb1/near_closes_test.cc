// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_closes.h"

#include "proxy/modules/smb/smb1/conversation.h"
#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE("SMB1: a CLOSE that could report something goes to the server") {
  Header header;
  header.flags2 = 0x4000;
  CloseRequest request;
  Open file;
  file.writes = file.flushed_writes = 3;
  CHECK(may_be_closed_early(file, header, request));
  SECTION("the file is deleted with it") { file.delete_on_close = true; }
  SECTION("attributes were set") { file.changed = true; }
  SECTION("a write was not flushed") { file.writes = 4; }
  SECTION("ranges are locked") { file.locked = true; }
  SECTION("it sets the time of the last write") { request.last_write = 1; }
  SECTION("the client understands no NT status") { header.flags2 = 0; }
  CHECK_FALSE(may_be_closed_early(file, header, request));
}

TEST_CASE("SMB1: a handle for attributes may stay open while a batch oplock holds the same name") {
  Conversation talk;
  Open& file = talk.open_batch("F", 10);
  Open look;
  look.uid = kUid;
  look.looks = true;
  look.name = file.name;
  CHECK(keeps_handle(file, talk.connection.opens().all()));
  CHECK(keeps_handle(look, talk.connection.opens().all()));
  SECTION("not one for data") { look.looks = false; }
  SECTION("not another user's") { look.uid = kUid + 1; }
  SECTION("not another name's") { look.name.path = u"G"; }
  SECTION("not while the oplock is being broken") { file.break_pending = true; }
  CHECK_FALSE(keeps_handle(look, talk.connection.opens().all()));
}

TEST_CASE("SMB1: a failed CLOSE that was answered early is a loss of what was written") {
  Conversation talk;
  Outputs out;
  LostWrites lost;
  const LostFiles files(lost, {}, talk.connection);
  NearCloses closes(out, lost, files);
  Open& file = talk.open_batch("F", 10);
  const bool was_written = GENERATE(false, true);
  file.writes = was_written ? 1 : 0;
  const LostWrites::File named = files.of(file);
  closes.pass(frame_of(close(file.fid, 11)), file, 7_number);
  const PutOut put(out);
  CHECK(put.passed.size() == 1);
  REQUIRE(put.all<Promised>().size() == 1);
  CHECK(put.all<Promised>()[0].message == 7_number);
  CHECK(closes.is_closing(file.fid));
  CHECK_FALSE(closes.is_closing(static_cast<std::uint16_t>(file.fid + 1)));
  CHECK_FALSE(closes.kept({.message = 8_number}));
  CHECK_FALSE(closes.is_idle());
  SECTION("kept") {
    CHECK(closes.kept({.message = 7_number}) == NearCloses::Outcome::kept);
    CHECK_FALSE(lost.has_record(named));
  }
  SECTION("failed") {
    CHECK(closes.kept({.message = 7_number, .status = 0xC000007F}) == NearCloses::Outcome::failed);
    CHECK(lost.has_record(named) == was_written);
  }
  CHECK(closes.is_idle());
  CHECK_FALSE(closes.kept({.message = 7_number}));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
