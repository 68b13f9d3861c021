// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_ahead.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

struct Having : Conversation {
  Outputs out;
  LocalAnswers local{connection};
  Promises promises;
  modules::Counters counters;
  NearAhead ahead{out, connection, local, promises, counters, std::make_shared<AheadAccount>()};

  Open& opened(const std::string& name, std::uint16_t mid, Oplock oplock) {
    Open& open = open_batch(name, mid);
    open.oplock = oplock;
    ahead.opened(&open, number_of(mid));
    (void)PutOut(out);
    return open;
  }
  bool is_void(const Open& open) {
    const auto drops = PutOut(out).all<Drop>();
    return std::ranges::any_of(drops, [&](const Drop& drop) { return drop.open == open.key; });
  }
  void passes(const Slice& frame) {
    ask(frame);
    ahead.passes(message_in(frame));
  }
};

TEST_CASE("SMB1: a request that passes makes void the data that it may change") {
  Having near;
  Open& meant = near.opened("F", 10, Oplock::batch);
  Open& shared = near.opened("G", 11, Oplock::level2);
  Open& guarded = near.opened("H", 12, Oplock::batch);
  bool is_change = true;
  SECTION("a write") { near.passes(write(meant.fid, 0, as_bytes("x"), 13)); }
  SECTION("a new size") { near.passes(set_end_of_file(meant.fid, 5, 13)); }
  SECTION("a read changes nothing") {
    near.passes(read(meant.fid, 0, 5, 13));
    is_change = false;
  }
  const auto drops = PutOut(near.out).all<Drop>();
  const auto has = [&](const Open& open) {
    return std::ranges::any_of(drops, [&](const Drop& drop) { return drop.open == open.key; });
  };
  CHECK(has(meant) == is_change);
  CHECK(has(shared) == is_change);  // it may be the same file by another name
  CHECK_FALSE(has(guarded));
}

TEST_CASE("SMB1: while reports do not arrive, nothing holds that depends on them") {
  Having near;
  Open& watched = near.opened("F", 10, Oplock::batch);
  Open& other = near.opened("G", 11, Oplock::batch);
  watched.watched = true;
  near.ahead.unheard();
  const auto drops = PutOut(near.out).all<Drop>();
  REQUIRE(drops.size() == 1);
  CHECK(drops[0].open == watched.key);
  CHECK(drops[0].open != other.key);
}

TEST_CASE("SMB1: a promised write makes void the data read of its file") {
  Having near;
  Open& file = near.opened("F", 10, Oplock::batch);
  near.ahead.written(file);
  CHECK(near.is_void(file));
  near.ahead.forget(file.key);
  near.ahead.written(file);
  CHECK_FALSE(near.is_void(file));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
