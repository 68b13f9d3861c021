// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/changes_since.h"

#include <catch2/catch.hpp>

using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

struct Changing {
  Files files;
  Open open;
  ChangesSince since;

  Changing() {
    open.group = files.group_of({.path = u"NAME"});
    write();  // before it was opened
    since = ChangesSince(open);
  }
  void write() { open.group->add(&FileCounts::changes), open.group->add(&FileCounts::writes); }
};

}  // namespace

TEST_CASE("an open that was just answered has no changes") {
  const Changing t;
  CHECK_FALSE(t.since.any(t.open));
  CHECK_FALSE(t.since.may_be_unfinished(t.open));
}

TEST_CASE("doubts void what is known, and leave nothing unfinished") {
  Changing t;
  t.open.doubted();
  CHECK(t.since.any(t.open));
  CHECK_FALSE(t.since.may_be_unfinished(t.open));
}

TEST_CASE("writes are unfinished until a FLUSH behind them, and void what was known before") {
  Changing t;
  t.write();
  CHECK(t.since.any(t.open));
  CHECK(t.since.may_be_unfinished(t.open));
  const ChangesSince sent(t.open);
  t.write();
  t.since.flushed(sent);
  CHECK(t.since.may_be_unfinished(t.open));
  t.since.flushed(ChangesSince(t.open));
  CHECK_FALSE(t.since.may_be_unfinished(t.open));
  CHECK(t.since.any(t.open));
}

TEST_CASE("no FLUSH finishes other changes") {
  Changing t;
  t.open.changed();
  t.since.flushed(ChangesSince(t.open));
  CHECK(t.since.may_be_unfinished(t.open));
}
