// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/local_closes.h"

#include <catch2/catch.hpp>
#include <functional>

#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

struct Closable {
  Files files;
  Open open;
  Closable() {
    open.group = files.group_of({.path = u"NAME"});
    open.disk_file = true;
    open.caching = lease_state::read | lease_state::handle;
    open.file = {3, 4};
  }
};

}  // namespace

TEST_CASE("a cached handle of a plain file may be closed locally, unless one condition is not met") {
  const Closable plain;
  CHECK(may_be_closed_locally(plain.open, ChangesSince(plain.open)));
  const std::vector<std::function<void(Open&)>> changes = {
      [](Open& open) { open.disk_file = false; },
      [](Open& open) { open.outlasts_breaks = true; },
      [](Open& open) { open.reconnected = true; },
      [](Open& open) { open.replayed = true; },
      [](Open& open) { open.locked = true; },
      [](Open& open) { open.options = create_options::delete_on_close; },
      [](Open& open) { open.caching = lease_state::read | lease_state::write; },
      [](Open& open) { open.break_pending = true; },
      [](Open& open) { open.changed(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    Closable t;
    const ChangesSince since(t.open);
    changes[i](t.open);
    CHECK_FALSE(may_be_closed_locally(t.open, since));
  }
}

TEST_CASE(
    "a file with WRITEs that the server has answered may be closed locally under the client's own lease") {
  const auto may_be_closed = [](const std::function<void(Open&)>& change) {
    Closable t;
    t.open.caching = lease_state::read | lease_state::write | lease_state::handle;
    t.open.lease.emplace();
    t.open.durable = true;
    const ChangesSince since(t.open);
    t.open.changed();
    t.open.group->add(&FileCounts::writes);
    change(t.open);
    return may_be_closed_locally(t.open, since);
  };
  CHECK(may_be_closed([](Open&) {}));
  const std::vector<std::function<void(Open&)>> changes = {
      [](Open& open) { open.lease.reset(); },
      [](Open& open) { open.on_behalf = true; },
      [](Open& open) { open.caching = lease_state::read | lease_state::handle; },
      [](Open& open) { open.outlasts_breaks = true; },
      [](Open& open) { open.break_pending = true; },
      [](Open& open) { open.group->add(&FileCounts::unsettled); },
      [](Open& open) { open.changed(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(may_be_closed(changes[i]));
  }
}

TEST_CASE("a CLOSE is answered with what is known of the file, if the client asks for it") {
  Closable t;
  t.open.end_of_file = 5;
  t.open.allocation_bytes = 6;
  t.open.file_attributes = 7;
  t.open.times.change = 8;
  CHECK(closed_as(t.open, 0).end_of_file == 0);
  CHECK(closed_as(t.open, 0).flags == 0);
  const CloseResponse full = closed_as(t.open, kClosePostQueryAttributes);
  CHECK(full.flags == kClosePostQueryAttributes);
  CHECK(full.end_of_file == 5);
  CHECK(full.allocation_bytes == 6);
  CHECK(full.file_attributes == 7);
  CHECK(full.times.change == 8);
}

TEST_CASE("a break that crosses a CLOSE is acknowledged by it, until the server has answered") {
  const Connection connection;
  LocalCloses closes;
  Closable t;
  CHECK_FALSE(closes.acknowledge(oplock_break({3, 4}, OplockLevel::none), connection));
  closes.answered(10_message, t.open);
  CHECK_FALSE(closes.empty());
  CHECK(closes.acknowledge(oplock_break({3, 4}, OplockLevel::none), connection));
  CHECK_FALSE(closes.acknowledge(oplock_break({3, 5}, OplockLevel::none), connection));
  CHECK_FALSE(closes.finished(11_message));
  CHECK(closes.finished(10_message));
  CHECK(closes.empty());
  CHECK_FALSE(closes.acknowledge(oplock_break({3, 4}, OplockLevel::none), connection));
}

TEST_CASE("a break of a lease reaches the client while another open shares it") {
  Connection connection;
  connect(connection);
  Lease lease;
  lease.key[0] = std::byte{1};
  lease.state = lease_state::read | lease_state::handle;
  const Granted granted{.file = {5, 6}, .oplock = OplockLevel::lease, .lease = lease};
  Closable t;
  t.open.lease = lease.key;
  LocalCloses closes;
  closes.answered(10_message, t.open);
  const Message taken_back = lease_break(lease.key, lease.state, 0);
  CHECK(closes.acknowledge(taken_back, connection));
  open_file(connection, 3, "another", granted);
  REQUIRE(connection.is_shared(lease.key));
  CHECK_FALSE(closes.acknowledge(taken_back, connection));
}
