// SPDX-License-Identifier: Apache-2.0
// The far half's records when the near proxy fails, and its reports to clients (far_losses.h,
// near_settled.h).
#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/visit.h"

namespace longhaul::smb::smb2::model {
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a promise lost with its near proxy is reported when the file is opened through another") {
  const auto far = std::make_shared<LostWrites>();
  {
    Visit visit(near_daemon(1), far);
    const FileId a = visit.open("a");
    visit.open("b");
    visit.pass(seconds(3));  // nothing is promised of either any more
    visit.settle();
    REQUIRE(visit.status(visit.send_write(a, 0, "new")) == Status::success);
    REQUIRE(visit.promises(a, "newer"));
    // Also if the client has meanwhile gone on in a flow that nobody reads.
    if (GENERATE(false, true)) far->live().enter_unguarded({.server_port = 445});
    visit.near_fails();
    CHECK(visit.server.files["a"] == "new");
  }
  CHECK(far->waiting() == 1);
  CHECK(far->events().counters().suspected[static_cast<std::size_t>(Cause::near_vanished)] == 1);
  SECTION("once to a reader, once to a writer") {
    Visit visit(near_daemon(2), far);
    CHECK(visit.opens("b") == Status::success);
    CHECK(visit.opens("a", Disposition::open, access::read_attributes) == Status::success);
    CHECK(visit.opens("a", Disposition::open, access::read_data) == Status::lost_writebehind_data);
    CHECK(visit.opens("a", Disposition::open, access::read_data) == Status::success);
    CHECK(visit.opens("a") == Status::lost_writebehind_data);
    CHECK(visit.opens("a") == Status::success);
  }
  SECTION("not to a client that replaces the content, and to none afterwards") {
    Visit visit(near_daemon(2), far);
    CHECK(visit.opens("a", Disposition::overwrite_if) == Status::success);
    CHECK(far->waiting() == 0);
    CHECK(visit.opens("a") == Status::success);
  }
  SECTION("not through the near daemon that made the promise: it knows better") {
    Visit visit(near_daemon(1), far);
    CHECK(visit.opens("a") == Status::success);
    CHECK(far->waiting() == 0);
  }
}

TEST_CASE(
    "a far half that is stopped remembers what may have been promised, as a client may come past both "
    "halves") {
  const auto far = std::make_shared<LostWrites>();
  const bool settled = GENERATE(false, true);
  {
    Visit visit(near_daemon(1), far);
    const FileId a = visit.open("a");
    visit.open("b");
    REQUIRE(visit.promises(a, "new"));
    if (settled) {
      visit.settle();
      visit.pass(seconds(3));
      visit.settle();
    }
    visit.link_cut = true;
  }
  CHECK(far->waiting() == (settled ? 0 : 2));  // of b, too, it does not know
  const std::uint64_t number = GENERATE(1, 2);
  Visit visit(near_daemon(number), far);
  CHECK(visit.opens("a") == (settled || number == 1 ? Status::success : Status::lost_writebehind_data));
}

TEST_CASE("the first WRITE after a pause waits for the server, and later ones are promised again") {
  Visit visit(near_daemon(1), std::make_shared<LostWrites>());
  const FileId a = visit.open("a");
  REQUIRE(visit.promises(a, "1"));
  visit.settle();
  visit.pass(seconds(3));
  visit.settle();
  CHECK_FALSE(visit.promises(a, "2"));
  visit.settle();
  CHECK(visit.promises(a, "3"));
  visit.settle();
  CHECK(visit.server.files["a"] == "3ld");
}

TEST_CASE("a file is not in doubt after its CLOSE, a near half's silence or a normal end") {
  const auto far = std::make_shared<LostWrites>();
  Visit visit(near_daemon(1), far);
  const FileId a = visit.open("a");
  REQUIRE(visit.promises(a, "1"));
  visit.settle();
  SECTION("its CLOSE was answered") {
    REQUIRE(visit.status(visit.send_close(a)) == Status::success);
    visit.settle();
  }
  SECTION("nothing was promised for some time") {
    visit.pass(seconds(3));
    visit.settle();
  }
  SECTION("the client's connection has ended") {
    visit.client_ends();
    visit.settle();
  }
  visit.near_fails();
  CHECK(far->waiting() == 0);
}

TEST_CASE("an open is in doubt as long as the near half has promises outstanding, however long that takes") {
  const auto far = std::make_shared<LostWrites>();
  Visit visit(near_daemon(1), far);
  const FileId a = visit.open("a");
  visit.server_idle = true;
  REQUIRE(visit.status(visit.send_write(a, 0, "1")) == Status::success);
  for (int i = 0; i < 5; ++i) {
    visit.pass(seconds(3));
    visit.settle();
  }
  visit.near_fails();
  CHECK(far->waiting() == 1);
}

TEST_CASE("a failed promise is remembered until the near half has told the client") {
  const bool told = GENERATE(false, true);
  const auto far = std::make_shared<LostWrites>();
  Visit visit(near_daemon(1), far);
  const FileId a = visit.open("a");
  visit.server_idle = true;
  REQUIRE(visit.status(visit.send_write(a, 0, "1")) == Status::success);
  const MessageId next = told ? visit.send_flush(a) : visit.send_close(a);
  visit.settle();
  // Else the near proxy fails before the answers have come.
  visit.link_cut = !told;
  visit.server.fail_write = 0;
  visit.server_idle = false;
  visit.settle();
  CHECK(visit.answers.contains(next) == told);
  if (told) CHECK(visit.status(visit.send_close(a)) == Status::lost_writebehind_data);
  visit.settle();
  visit.near_fails();
  CHECK(far->waiting() == (told ? 0 : 1));
}

TEST_CASE("an error that a client may not have read is reported again") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const bool at_far = GENERATE(false, true);
  (at_far ? far : lost)->add({.share = u"X", .path = u"A"}, {.cause = Cause::near_vanished, .near = 9});
  {
    Visit visit(lost, far);
    CHECK(visit.opens("a") == Status::lost_writebehind_data);
    visit.client_ends(modules::Ending::reset);
    visit.settle();
  }
  Visit visit(lost, far);
  CHECK(visit.opens("a") == Status::lost_writebehind_data);
  CHECK(visit.opens("b") == Status::success);  // it goes on
  CHECK(visit.opens("a") == Status::success);
  CHECK(lost->waiting() + far->waiting() == 0);
}

TEST_CASE("a flow that owes writes of a file is given up when the file is opened bypassing the link") {
  const auto lost = near_daemon(1);
  Visit visit(lost, std::make_shared<LostWrites>());
  const FileId a = visit.open("a");
  CHECK_FALSE(lost->any({}));
  visit.link_cut = true;
  REQUIRE(visit.status(visit.send_write(a, 0, "new")) == Status::success);
  CHECK(lost->any({.server_port = 139}));
  lost->live().end({.share = u"X", .path = u"B"});
  CHECK(lost->waiting() == 0);
  lost->live().end({.share = u"X", .path = u"A"});
  CHECK(lost->take({.share = u"X", .path = u"A"}));
  visit.pass(milliseconds(1));
  CHECK(visit.aborted);
  CHECK_FALSE(lost->any({}));
}

TEST_CASE("an open waits for outstanding writes of its client's older connection, whichever is faster") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  Visit old(lost, far), visit(lost, far);
  const FileId a = old.open("a");
  old.server_idle = true;
  REQUIRE(old.status(old.send_write(a, 0, "new")) == Status::success);
  CHECK(visit.opens("b") == Status::success);
  const Disposition disposition = GENERATE(Disposition::open, Disposition::overwrite_if);
  const MessageId create = visit.send_create("a", disposition, kNone);
  const MessageId behind = visit.send_create("b", Disposition::open, kNone);
  const auto passes = [&](std::chrono::milliseconds time) {
    visit.pass(time);
    visit.settle();
  };
  passes(seconds(4));
  CHECK_FALSE(visit.answers.contains(create));
  CHECK_FALSE(visit.answers.contains(behind));
  SECTION("it is written") {
    old.server_idle = false;
    old.settle();
    passes(milliseconds(50));
    CHECK(visit.status(create) == Status::success);
    CHECK(visit.status(behind) == Status::success);
    CHECK(lost->waiting() == 0);
    CHECK_FALSE(old.aborted);
    // Nothing is promised through the older one any more.
    CHECK_FALSE(old.promises(a, "more"));
  }
  SECTION("the server ends the older connection") {
    old.server_ends();
    old.settle();
    REQUIRE(old.aborted);
    old.near().twin_lost();
    passes(milliseconds(50));
    const bool replaces = disposition == Disposition::overwrite_if;
    CHECK(visit.status(create) == (replaces ? Status::success : Status::lost_writebehind_data));
    CHECK(visit.status(behind) == Status::success);
  }
  SECTION("the server no longer answers") {
    passes(seconds(2));
    old.pass(milliseconds(1));
    CHECK(old.aborted);
    const bool replaces = disposition == Disposition::overwrite_if;
    CHECK(visit.status(create) == (replaces ? Status::success : Status::lost_writebehind_data));
    CHECK(lost->events().counters().lost[static_cast<std::size_t>(Cause::server_gone)] == 1);
  }
}

TEST_CASE("a far half that loses an oplock without the near half's answer sends no more promised WRITEs") {
  const auto far = std::make_shared<LostWrites>();
  Visit visit(near_daemon(1), far);
  const FileId a = visit.open("a");
  visit.link_cut = true;
  REQUIRE(visit.status(visit.send_write(a, 0, "new")) == Status::success);
  REQUIRE(visit.server.take_oplock(kNone));
  visit.settle();
  visit.pass(seconds(24));
  visit.settle();
  CHECK_FALSE(visit.aborted);
  SECTION("the near half is heard in time") {
    visit.link_cut = false;
    visit.settle();
    CHECK_FALSE(visit.server.breaking());
    visit.pass(seconds(5));
    visit.settle();
    CHECK_FALSE(visit.aborted);
    CHECK(visit.server.files["a"] == "new");
  }
  SECTION("it is not") {
    visit.pass(seconds(1));
    CHECK(visit.aborted);
    visit.link_cut = false;
    visit.settle();
    CHECK(visit.server.files["a"] == "old");
    CHECK(far->waiting() == 1);
  }
}

TEST_CASE("writes that a server's end may have lost are remembered by both halves, and reported once") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  {
    Visit visit(lost, far);
    const FileId a = visit.open("a");
    visit.server_idle = true;
    REQUIRE(visit.status(visit.send_write(a, 0, "new")) == Status::success);
    visit.settle();
    visit.server_ends();
    CHECK(far->waiting() == 1);
    visit.near().twin_lost();
  }
  CHECK(lost->waiting() == 1);
  SECTION("through the near daemon") {
    Visit visit(lost, far);
    CHECK(visit.opens("a") == Status::lost_writebehind_data);
    CHECK(visit.opens("a") == Status::success);
    CHECK(lost->waiting() + far->waiting() == 0);
  }
  SECTION("through another, after the first has failed") {
    Visit visit(near_daemon(2), far);
    CHECK(visit.opens("a") == Status::lost_writebehind_data);
    CHECK(visit.opens("a") == Status::success);
  }
}

TEST_CASE("a client that sends much behind a waiting open does not get more time") {
  const auto lost = near_daemon(1);
  Visit old(lost, std::make_shared<LostWrites>()), visit(lost, std::make_shared<LostWrites>());
  const FileId a = old.open("a"), b = visit.open("b");
  old.server_idle = true;
  REQUIRE(old.status(old.send_write(a, 0, "new")) == Status::success);
  const MessageId create = visit.send_create("a", Disposition::open, kNone);
  const std::string data(64 << 10, 'x');
  for (std::size_t sent = 0; sent < OpenGate<Frame>::kMostHeldBytes; sent += data.size()) {
    CHECK_FALSE(visit.answers.contains(create));
    visit.send_write(b, sent, data);
  }
  visit.settle();
  CHECK(visit.status(create) == Status::lost_writebehind_data);
}

TEST_CASE("a record ends with its file: if that is deleted or emptied") {
  const auto lost = near_daemon(1);
  const auto far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  const LostWrites::File a{.share = u"X", .path = u"A"}, y{.share = u"X", .path = u"Y"};
  half->add(a, {.cause = Cause::server_gone});
  half->add(y, {.cause = Cause::server_gone});
  Visit visit(lost, far);
  constexpr std::uint32_t kDelete = 0x10080;
  const auto open_to_delete = [&](std::uint32_t options) {
    const auto file = visit.create("a", Disposition::open, kNone, options, kDelete);
    REQUIRE(file);
    return *file;
  };
  const auto says = [](std::uint8_t byte) { return Buffer{std::byte{byte}}; };
  SECTION("deleted") {
    const FileId file = open_to_delete(0);
    REQUIRE(visit.status(visit.send_set_info(file, file_info::disposition, says(1))) == Status::success);
    CHECK(half->waiting() == 2);
    REQUIRE(visit.status(visit.send_close(file)) == Status::success);
    visit.settle();
    CHECK(half->waiting() == 1);
  }
  SECTION("deleted after all not") {
    const FileId file = open_to_delete(0);
    REQUIRE(visit.status(visit.send_set_info(file, file_info::disposition, says(1))) == Status::success);
    REQUIRE(visit.status(visit.send_set_info(file, file_info::disposition, says(0))) == Status::success);
    REQUIRE(visit.status(visit.send_close(file)) == Status::success);
    visit.settle();
    CHECK(half->waiting() == 2);
  }
  SECTION("deleted on close") {
    const FileId file = open_to_delete(create_options::delete_on_close);
    REQUIRE(visit.status(visit.send_close(file)) == Status::success);
    visit.settle();
    CHECK(half->waiting() == 1);
  }
  SECTION("emptied") {
    REQUIRE(visit.status(visit.send_end_of_file(open_to_delete(0), 0)) == Status::success);
    visit.settle();
    CHECK(half->waiting() == 1);
  }
  CHECK_FALSE(half->has(a, LostWrites::Use::writes) == (half->waiting() == 1));
}

}  // namespace longhaul::smb::smb2::model
