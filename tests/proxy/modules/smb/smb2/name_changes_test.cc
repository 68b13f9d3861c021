// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/name_changes.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

TEST_CASE("changes of names are counted for each tree") {
  NameChanges changes;
  changes.changed(1, 2);
  changes.changed(1, 2);
  changes.changed(1, 3);
  CHECK(changes.in(1, 2) == 2);
  CHECK(changes.in(1, 3) == 1);
  CHECK(changes.in(2, 2) == 0);
}

TEST_CASE("changes in more trees than are counted count for all") {
  NameChanges changes;
  for (TreeId n = 0; n < NameChanges::kMostTrees; ++n) changes.changed(1, n);
  changes.changed(1, NameChanges::kMostTrees);
  CHECK(changes.in(1, NameChanges::kMostTrees) == 1);
  CHECK(changes.in(1, 0) == 2);
  changes.changed(1, 0);
  CHECK(changes.in(1, 0) == 3);
  CHECK(changes.in(1, 1) == 2);
}

TEST_CASE("requests that may change names of a tree, or what its directories say of them") {
  Connection connection;
  connect(connection);
  const auto may_change = [&](const Message& message) {
    const Changes changes = connection.on_request(message);
    return may_change_names(message, changes, connection);
  };
  const FileId reads{1, 1}, deletes{2, 2};
  open_file(connection, 3, "a", {.file = reads}, {.desired_access = access::read_data});
  open_file(connection, 4, "b", {.file = deletes}, {.desired_access = access::delete_file});

  CHECK_FALSE(may_change(create_request(10, "c", {.disposition = Disposition::open})));
  CHECK(may_change(create_request(11, "c", {.disposition = Disposition::open_if})));
  CHECK(may_change(create_request(12, "c", {.options = create_options::delete_on_close})));
  CHECK_FALSE(may_change(request(Command::read, 13, read_request_body(reads, 0, 1))));
  CHECK(may_change(request(Command::write, 14, write_request_body(reads, 0, "x"))));
  CHECK(may_change(request(Command::set_info, 15, set_info_request_body(reads, file_info::basic))));
  CHECK_FALSE(may_change(request(Command::close, 16, close_request_body(reads))));
  CHECK(may_change(request(Command::close, 17, close_request_body(deletes))));
  CHECK(may_change(request(Command::close, 18, close_request_body({9, 9}))));  // whatever it is
  // It voids what was read of its file.
  CHECK(may_change(request(Command::lock, 19, lock_request_body(reads))));
}
