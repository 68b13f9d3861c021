// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_oplocks.h"

#include "proxy/modules/smb/smb1/conversation.h"
#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::smb::smb1::testing {
namespace {

struct Granting : Conversation {
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  Outputs out;
  LocalAnswers local{connection};
  LostFiles files{*lost, {}, connection};
  modules::Counters counters;
  NearWrites writes{out, connection, local, files, counters, lost, {}};
  NearCloses closes{out, *lost, files};
  NearAhead ahead{out, connection, local, writes.promises(), counters, std::make_shared<AheadAccount>()};
  NearOplocks oplocks{out, connection, local, ahead, writes, closes, counters};

  // Under an oplock that the far half has requested.
  Open& open_on_behalf(const std::string& name, std::uint16_t mid) {
    Open& open = this->open(name, mid);
    ahead.opened(&open, {});
    oplocks.held({}, {.open = open.key, .level = static_cast<std::uint8_t>(Oplock::batch)});
    (void)PutOut(out);
    return open;
  }
};

Slice break_of(std::uint16_t fid) {
  return make_frame({.command = 0x24, .pid = 0xFFFF, .tid = kTid, .uid = kUid, .mid = 0xFFFF},
                    Fields{}.andx().u16(fid).u8(2).u8(0).u32(0).u16(0).u16(0).bytes, {});
}

TEST_CASE("SMB1: only an oplock on the client's behalf is given up, with the data read under it") {
  Granting near;
  Open& file = near.open_on_behalf("F", 10);
  Open& other = near.open_on_behalf("G", 11);
  Open& own = near.open_batch("H", 12);
  near.oplocks.give_up(own.name);
  CHECK(PutOut(near.out).told.empty());
  near.oplocks.give_up(file.name);
  const PutOut put(near.out);
  REQUIRE(put.all<Broken>().size() == 1);
  CHECK(put.all<Broken>()[0].open == file.key);
  REQUIRE(put.all<Drop>().size() == 1);
  CHECK(put.all<Drop>()[0].open == file.key);
  CHECK(file.oplock == Oplock::none);
  CHECK(other.oplock == Oplock::batch);
  CHECK(own.oplock == Oplock::batch);
  near.oplocks.give_up(file.name);  // once
  CHECK(PutOut(near.out).told.empty());
}

TEST_CASE("SMB1: the server's break shows the client what it does not know to be closed") {
  Granting near;
  Open& file = near.open_batch("F", 10);
  const std::uint16_t fid = file.fid;
  CHECK(near.oplocks.broken(message_in(break_of(fid))));
  CHECK(file.break_pending);
  CHECK(near.counters.breaks == 1);
  near.closes.pass(frame_of(close(fid, 11)), file, 1_number);
  near.connection.close(file.key);
  CHECK_FALSE(near.oplocks.broken(message_in(break_of(fid))));
  CHECK(near.oplocks.broken(message_in(break_of(static_cast<std::uint16_t>(fid + 1)))));
  CHECK(near.oplocks.broken(message_in(flush(fid, 12))));  // no break
}

TEST_CASE("SMB1: an oplock that was given up stays so when the server takes it back") {
  Granting near;
  Open& file = near.open_on_behalf("F", 10);
  const bool is_given_up = GENERATE(false, true);
  if (is_given_up) near.oplocks.give_up(file.name);
  (void)PutOut(near.out);
  near.oplocks.taken_back({.open = file.key, .level = static_cast<std::uint8_t>(Oplock::level2)});
  CHECK(file.oplock == (is_given_up ? Oplock::none : Oplock::level2));
  CHECK(PutOut(near.out).all<Broken>().size() == 1);
  near.local.client_is_over();
  near.oplocks.taken_back({.open = file.key});
  CHECK(PutOut(near.out).all<Broken>().empty());
}

TEST_CASE("SMB1: a file is watched as long as the far half says so") {
  Granting near;
  Open& file = near.open_on_behalf("F", 10);
  near.oplocks.watched({.open = file.key, .watched = true});
  CHECK(file.watched);
  near.oplocks.watched({.open = file.key, .watched = false});
  CHECK_FALSE(file.watched);
  near.oplocks.held({}, {.open = file.key, .level = 4});  // no oplock that we know
  CHECK(file.oplock == Oplock::batch);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
