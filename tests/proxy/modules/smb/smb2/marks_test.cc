// SPDX-License-Identifier: Apache-2.0
// Promises wait for both sides' marks on disk, which outlive both daemons (promises/marks.h).
#include <catch2/catch.hpp>

#include "proxy/modules/promises/marking_host.h"
#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

using promises::test::Host;

struct MarkedVisit : World {
  MarkedVisit(Host& near, Host& far) : World(5, near.lost, std::make_shared<Channels>(), {}, far.lost) {
    World::near().set_wake([this] { tell_features(); });
    World::far().set_wake([this] { tell_features(); });
    server.files["a"] = "old";
    REQUIRE(connect());
  }
  FileId open_file() {
    const auto file = create("a", Disposition::open, kNone);
    REQUIRE(file);
    settle();
    return *file;
  }
  bool is_answered(MessageId id) {
    settle();
    return answers.contains(id);
  }
};

}  // namespace

TEST_CASE("a WRITE is promised when both sides have marked the file, and waits for the server until then") {
  Host near(1), far(2);
  near.write(), far.write();
  MarkedVisit visit(near, far);
  const FileId file = visit.open_file();
  REQUIRE(near.marks().size() == 1);
  REQUIRE(far.marks().size() == 1);
  visit.server_idle = true;
  const auto write = visit.send_write(file, 0, "new");
  CHECK_FALSE(visit.is_answered(write));
  SECTION("whichever is last") {
    const bool near_first = GENERATE(true, false);
    (near_first ? near : far).write();
    CHECK_FALSE(visit.is_answered(write));
    (near_first ? far : near).write();
    CHECK(visit.is_answered(write));
  }
  SECTION("not when a disk fails") {
    near.write();
    far.write(false);
    CHECK_FALSE(visit.is_answered(write));
    visit.send_write(file, 0, "newer");
    visit.settle();
    CHECK(visit.near().reason() == reasons::smb_not_recorded);
  }
  SECTION("not when the near disk fails") {
    far.write();
    near.write(false);
    CHECK_FALSE(visit.is_answered(write));
    visit.send_write(file, 0, "newer");
    visit.settle();
    CHECK(visit.near().reason() == reasons::smb_not_recorded);
  }
  visit.server_idle = false;
  CHECK(visit.is_answered(write));
  REQUIRE(visit.status(visit.send_close(file)) == Status::success);
  visit.settle();
  CHECK(near.marks().size() == 0);
  CHECK(far.marks().size() == 0);
}

TEST_CASE("a file of which nothing is promised any more is not marked, and is marked again before it is") {
  Host near(1), far(2);
  const auto write_both = [&] { near.write(), far.write(); };
  write_both();
  MarkedVisit visit(near, far);
  const FileId file = visit.open_file();
  write_both();
  visit.settle();
  visit.pass(std::chrono::seconds(3));
  visit.settle();
  CHECK(near.marks().size() == 0);
  CHECK(far.marks().size() == 0);
  REQUIRE(visit.status(visit.send_write(file, 0, "1")) == Status::success);
  visit.settle();
  CHECK(near.marks().size() == 1);
  CHECK(far.marks().size() == 1);
  visit.server_idle = true;
  const auto write = visit.send_write(file, 0, "2");
  CHECK_FALSE(visit.is_answered(write));
  write_both();
  CHECK(visit.is_answered(write));
}

TEST_CASE("both hosts lose power one after the other, and the client is told once") {
  std::string near_disk, far_disk;
  {
    Host near(1), far(2);
    near.write(), far.write();
    MarkedVisit visit(near, far);
    const FileId file = visit.open_file();
    near.write(), far.write();
    visit.settle();
    visit.link_cut = true;
    const auto write = visit.send_write(file, 0, "new");
    REQUIRE(visit.is_answered(write));
    near_disk = near.synced, far_disk = far.synced;
    visit.link_cut = true;
  }
  Host near(3, near_disk), far(4, far_disk);
  CHECK(near.lost->waiting() == 1);
  CHECK(far.lost->waiting() == 1);
  near.write(), far.write();
  MarkedVisit visit(near, far);
  CHECK(visit.status(visit.send_create("a", Disposition::open, kNone, 0, 0x1F01FF)) ==
        Status::lost_writebehind_data);
  CHECK(visit.status(visit.send_create("a", Disposition::open, kNone, 0, 0x1F01FF)) == Status::success);
  CHECK(far.lost->waiting() == 0);
}

}  // namespace longhaul::smb::smb2::model
