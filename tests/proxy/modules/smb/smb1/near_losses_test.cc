// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_losses.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

struct Losing : Conversation {
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(9);
  Outputs out;
  LostFiles files{*lost, {}, connection};
  NearLosses losses{out, files, lost, {}};

  void lose(const std::string& name) {
    lost->add(files.of(file_name(kTid, as_bytes(name), false)), {.cause = Cause::link_lost});
  }
  static constexpr CreateOptions kWrites{.access = 2};
};

TEST_CASE("SMB1: an open of a file with lost writes is told, until the client has read that") {
  Losing near;
  CHECK_FALSE(near.losses.goes_on_with_lost(message_in(create("F", 10, Losing::kWrites))));
  CHECK_FALSE(near.losses.has_records());
  near.lose("F");
  CHECK(near.losses.has_records());
  CHECK_FALSE(near.losses.goes_on_with_lost(message_in(create("G", 11, Losing::kWrites))));
  CHECK_FALSE(near.losses.goes_on_with_lost(message_in(read(1, 0, 5, 12))));
  CHECK(near.losses.goes_on_with_lost(message_in(create("F", 13, Losing::kWrites))));
  near.losses.client_goes_on();  // that answer has not arrived
  CHECK(near.losses.goes_on_with_lost(message_in(create("F", 14, Losing::kWrites))));
  near.losses.arrived(near.losses.awaited());
  near.losses.client_goes_on();
  CHECK_FALSE(near.losses.goes_on_with_lost(message_in(create("F", 15, Losing::kWrites))));
  CHECK_FALSE(near.losses.has_records());
}

TEST_CASE("SMB1: where nothing may be answered, only a reset tells") {
  Losing near;
  near.lose("F");
  CHECK_FALSE(near.losses.is_told_by_reset(message_in(create("G", 10, Losing::kWrites))));
  CHECK(near.losses.is_told_by_reset(message_in(create("F", 11, Losing::kWrites))));
  near.lose("F");
  CHECK(near.losses.is_told_unread());
}

TEST_CASE("SMB1: the far half learns the daemon's number once, and that its report was read") {
  Losing near;
  near.losses.say_who();
  near.losses.say_who();
  CHECK(PutOut(near.out).all<Remembers>().size() == 1);
  const Slice told = make_frame({.command = 0xA2, .status = 0xC0000222, .flags = 0x80, .mid = 10}, {}, {});
  near.losses.passes(message_in(told));
  near.losses.client_goes_on();
  CHECK(PutOut(near.out).all<LossRead>().empty());
  near.losses.arrived(near.losses.awaited());
  near.losses.client_goes_on();
  CHECK(PutOut(near.out).all<LossRead>().size() == 1);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
