// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/connection.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE("SMB1: an open is known from its answer until its CLOSE has succeeded") {
  Conversation talk;
  const Slice request = create("F", 10, {.flags = 6, .disposition = 3});
  talk.ask(request);
  CHECK(talk.connection.opens().all().empty());
  const Open* open = talk.answer(request).opened;
  REQUIRE(open);
  CHECK(open->oplock == Oplock::batch);
  CHECK(open->pid == 0x1234);
  const OpenKey key = open->key;
  const auto closed = talk.exchange(close(open->fid, 11));
  REQUIRE(closed.closed.size() == 1);
  CHECK(closed.closed[0].key == key);
  CHECK_FALSE(talk.connection.open(key));
}

TEST_CASE("SMB1: after a CLOSE that has failed nothing is cached, because the open may still be there") {
  Conversation talk;
  Open& open = talk.open_batch("F", 10);
  talk.server.refused[0x04] = 0xC0000008;
  CHECK(talk.exchange(close(open.fid, 11)).closed.empty());
  CHECK_FALSE(open.may_cache_reads());
}

TEST_CASE("SMB1: the opens of a tree and of a session end with it") {
  const auto command = static_cast<std::uint8_t>(GENERATE(0x71, 0x74));
  Conversation talk;
  talk.open("F", 10);
  talk.open("G", 11);
  const Buffer words = command == 0x74 ? Fields{}.andx().bytes : Buffer{};
  const auto ended =
      talk.exchange(make_frame({.command = command, .tid = kTid, .uid = kUid, .mid = 12}, words, {}));
  CHECK(ended.closed.size() == 2);
  CHECK(talk.connection.opens().all().empty());
  CHECK(talk.connection.is_disk(kTid) == (command == 0x74));
}

TEST_CASE("SMB1: a FLUSH stands behind the writes requested before it") {
  Conversation talk;
  Open& open = talk.open("F", 10);
  talk.exchange(write(open.fid, 0, as_bytes("hello"), 11));
  CHECK(open.confirmed_bytes == 5);
  const Slice flushes = flush(open.fid, 12);
  talk.ask(flushes);
  talk.ask(write(open.fid, 5, as_bytes("!"), 13));
  talk.answer(flushes);
  CHECK(open.flushed_writes != open.writes);
  talk.connection.answered_here(number_of(13));
  CHECK_FALSE(talk.connection.pending(number_of(13)));
}

TEST_CASE("SMB1: a break leaves nothing to cache until it is answered; from level II it needs no answer") {
  Conversation talk;
  Open& open = talk.open_batch("F", 10);
  talk.server.break_oplock("F", 1);
  CHECK(talk.connection.on_break(message_in(talk.server.out.front())) == &open);
  CHECK_FALSE(open.may_cache_reads());
  talk.ask(oplock_ack(open.fid, 1));
  CHECK(open.oplock == Oplock::level2);
  CHECK(open.may_cache_reads());
  CHECK(talk.connection.on_break(message_in(talk.server.out.front())) == &open);
  CHECK(open.oplock == Oplock::none);
  CHECK_FALSE(open.break_pending);
}

TEST_CASE("SMB1: a request finds its open by the FID of its user and tree only") {
  Conversation talk;
  const Open& open = talk.open("F", 10);
  CHECK(talk.connection.open_of(message_in(read(open.fid, 0, 5, 11))) == &open);
  CHECK(talk.connection.open_of(message_in(set_end_of_file(open.fid, 5, 11))) == &open);
  CHECK_FALSE(talk.connection.open_of(message_in(query_path("F", 0x101, 11))));
  const Slice frame = read(open.fid, 0, 5, 11);
  Message other = message_in(frame);
  other.header.uid = kUid + 1;
  CHECK_FALSE(talk.connection.open_of(other));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
