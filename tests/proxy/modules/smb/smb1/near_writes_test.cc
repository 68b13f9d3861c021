// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_writes.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE("SMB1: each condition of an early answer to a WRITE") {
  const std::string data = "hello";
  Header header;
  header.flags2 = 0x4000;
  WriteRequest write{.data = as_bytes(data)};
  write.mode = kMessageStart;
  Open file;
  file.may_write = true;
  file.oplock = Oplock::batch;
  CHECK(may_be_promised(file, header, write));
  SECTION("read only") { file.may_write = false; }
  SECTION("no record could be about it") { file.unnamed = true; }
  SECTION("a shared oplock") { file.oplock = Oplock::level2; }
  SECTION("a break") { file.break_pending = true; }
  SECTION("the far half was told that nothing is promised") { file.settled = true; }
  SECTION("write-through") { file.write_through = true; }
  SECTION("deleted when it is closed") { file.delete_on_close = true; }
  SECTION("no NT status") { header.flags2 = 0; }
  SECTION("another mode") { write.mode = 1; }
  SECTION("no data") { write.data = {}; }
  SECTION("beyond any file system's limit") { write.offset = ~std::uint64_t{0} - 2; }
  CHECK_FALSE(may_be_promised(file, header, write));
}

struct Writing : Conversation {
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  Outputs out;
  LocalAnswers local{connection};
  LostFiles files{*lost, {}, connection};
  modules::Counters counters;
  NearWrites writes{out, connection, local, files, counters, lost, {}};
  Open& file = open_batch("F");
  std::string data = "hello";

  Writing() {
    Surroundings surroundings;
    surroundings.features.write_behind_cached = true;
    local.on_surroundings(surroundings);
    writes.room({.session = kUid, .tree = kTid, .available_bytes = 1ull << 40});
    writes.active({}, file);
    writes.marked({.open = file.key});
  }
  bool promise(std::uint16_t mid) {
    const Slice frame = write(file.fid, 0, as_bytes(data), mid);
    ask(frame);
    const auto message = message_in(frame);
    const auto request = parse_write_request(message, message.first());
    const auto conditions = writes.may_promise(file, message.header, *request);
    return conditions && writes.promise(file, frame_of(frame), message.header, *request, *conditions);
  }
  // A request that passes, and the server's answer to it as the client gets it.
  std::optional<Slice> passes(const Slice& frame) {
    ask(frame);
    const auto request = message_in(frame);
    writes.passes(request);
    server.receive(frame.bytes().subspan(kFrameHeadBytes));
    const Slice reply = server.out.back();
    server.out.clear();
    const auto message = message_in(reply);
    return writes.with_late_error({}, frame_of(reply), message,
                                  connection.pending(number_of(message.header)));
  }
};

constexpr std::uint32_t kRefused = 0xC000007F;

TEST_CASE("SMB1: a WRITE is promised under a number of its own, and answered before the server answers") {
  Writing near;
  REQUIRE(near.promise(11));
  REQUIRE(near.promise(11));  // clients use a MID again
  const PutOut put(near.out);
  CHECK(put.to_lan.size() == 2);
  CHECK(put.passed.size() == 2);
  REQUIRE(put.all<Promised>().size() == 2);
  CHECK(put.all<Promised>()[0].message != put.all<Promised>()[1].message);
  for (const Promised& each : put.all<Promised>()) near.writes.kept({.message = each.message, .written = 5});
  CHECK(near.writes.promises().audit().kept == 2);
  CHECK(near.file.confirmed_bytes == 5);
}

TEST_CASE("SMB1: nothing is promised after a break, after the end of promises, or without a mark") {
  Writing near;
  bool is_promised = false;
  SECTION("none of these") { is_promised = true; }
  SECTION("a break") { near.writes.stop(near.file.key); }
  SECTION("the end of all promises") { near.writes.stop(); }
  SECTION("the far half could not mark it") { near.writes.marked({.open = near.file.key, .refused = true}); }
  SECTION("no room at the server") {
    near.writes.room({.session = kUid, .tree = kTid, .available_bytes = 0});
  }
  CHECK(near.promise(11) == is_promised);
  CHECK(PutOut(near.out).to_lan.size() == (is_promised ? 1 : 0));
}

TEST_CASE("SMB1: a failed promise is reported by the next FLUSH, and resets the flow if only CLOSE could") {
  Writing near;
  REQUIRE(near.promise(11));
  const MessageNumber number = PutOut(near.out).all<Promised>().at(0).message;
  near.writes.kept({.message = number, .status = kRefused});
  CHECK(near.lost->has_record(near.files.of(near.file)));
  SECTION("FLUSH") {
    const auto told = near.passes(flush(near.file.fid, 12));
    REQUIRE(told);
    CHECK(message_in(*told).header.status == static_cast<std::uint32_t>(Status::lost_writebehind_data));
    near.writes.reset_if_doomed();
    CHECK_FALSE(near.writes.is_aborted());
  }
  SECTION("CLOSE") {
    CHECK_FALSE(near.passes(close(near.file.fid, 12)));
    near.writes.reset_if_doomed();
    CHECK(near.writes.is_aborted());
    CHECK(PutOut(near.out).aborted);
  }
}

TEST_CASE("SMB1: a file that ends with an outstanding promise resets the flow and is recorded") {
  Writing near;
  REQUIRE(near.promise(11));
  (void)PutOut(near.out);
  near.writes.over(near.file);
  CHECK(near.writes.is_aborted());
  CHECK(near.lost->has_record(near.files.of(near.file)));
  near.writes.abort(Cause::client_gone);  // once is enough
  CHECK(PutOut(near.out).aborted);
  CHECK_FALSE(PutOut(near.out).aborted);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
