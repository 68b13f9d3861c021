// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/open.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

constexpr std::uint32_t kReadCaching = lease_state::read, kWriteCaching = lease_state::write,
                        kHandleCaching = lease_state::handle;

const std::string_view kWideName("d\0\\\0f\0:\0s\0", 10);

Open requested_open(const CreateRequest& create, std::uint32_t flags = 0) {
  Open open;
  open.tree = 7;
  Header header;
  header.flags = flags;
  open.requested(create, header);
  return open;
}

}  // namespace

TEST_CASE("an open has the name and the rights that its CREATE asks for") {
  CreateRequest create;
  create.name = as_bytes(kWideName).first(6);
  create.desired_access = access::generic_read;
  create.share_access = 3;
  create.disposition = Disposition::open_if;
  const Open open = requested_open(create);
  CHECK(open.name == FileName{.tree = 7, .path = u"D\\F"});
  CHECK(open.spelled == u"d\\f");
  CHECK(open.may_read());
  CHECK_FALSE(open.may_write());
  CHECK(open.share_access == 3);
  CHECK_FALSE(open.unnamed);
  CHECK_FALSE(open.truncates());
  CHECK_FALSE(open.reconnected);
  CHECK_FALSE(open.may_be_replayed);
}

TEST_CASE("a stream and a file opened by its id cannot be named by a record") {
  CreateRequest create;
  create.name = as_bytes(kWideName);
  CHECK(requested_open(create).unnamed);
  create.name = as_bytes(kWideName).first(6);
  create.options = create_options::open_by_file_id;
  CHECK(requested_open(create).unnamed);
  CHECK_FALSE(requested_open(create).name.exact);
}

TEST_CASE("a reconnected handle has a name of another connection") {
  for (const Durable how : {Durable::reconnect, Durable::reconnect_v2}) {
    CreateRequest create;
    create.name = as_bytes(kWideName).first(6);
    create.durable = how;
    const Open open = requested_open(create);
    CHECK(open.reconnected);
    CHECK_FALSE(open.name.exact);
    CHECK(open.spelled.empty());
  }
  CreateRequest create;
  create.durable = Durable::request_v2;
  CHECK(requested_open(create).may_be_replayed);
}

TEST_CASE("generic rights mean what they contain") {
  const auto with = [](std::uint32_t access) {
    CreateRequest create;
    create.desired_access = access;
    return requested_open(create);
  };
  CHECK(with(access::generic_all).may_read());
  CHECK(with(access::generic_all).may_write());
  CHECK(with(access::generic_write).may_write());
  CHECK_FALSE(with(access::generic_write).may_read());
  CHECK(with(access::generic_execute).may_read());
  CHECK_FALSE(with(access::generic_execute).may_write());
}

TEST_CASE("some dispositions truncate the file") {
  const auto with = [](Disposition disposition) {
    CreateRequest create;
    create.disposition = disposition;
    return requested_open(create).truncates();
  };
  CHECK(with(Disposition::supersede));
  CHECK(with(Disposition::overwrite));
  CHECK(with(Disposition::overwrite_if));
  CHECK_FALSE(with(Disposition::open));
  CHECK_FALSE(with(Disposition::create));
  CHECK_FALSE(with(Disposition::open_if));
}

TEST_CASE("only a plain file of a disk share is a disk file") {
  const Tree disk{.type = ShareType::disk}, pipe{.type = ShareType::pipe};
  const auto granted = [](std::uint32_t attributes, const Tree* share) {
    Open open;
    CreateResponse answer;
    answer.file_attributes = attributes;
    open.granted(answer, share);
    return open;
  };
  CHECK(granted(0x80, &disk).disk_file);
  CHECK_FALSE(granted(0x80, &pipe).disk_file);
  CHECK_FALSE(granted(0x80, nullptr).disk_file);
  for (const std::uint32_t special :
       {std::uint32_t{file_attributes::reparse_point}, std::uint32_t{file_attributes::offline},
        std::uint32_t{file_attributes::recall_on_data_access}})
    CHECK_FALSE(granted(special, &disk).disk_file);
  CHECK(granted(file_attributes::directory, &disk).directory);
  CHECK_FALSE(granted(file_attributes::directory, &disk).disk_file);
}

TEST_CASE("an open has what the server granted") {
  Open open;
  open.session = 1;
  open.tree = 2;
  CreateResponse answer;
  answer.file = {3, 4};
  answer.oplock = OplockLevel::exclusive;
  answer.end_of_file = 100;
  answer.allocation_bytes = 200;
  answer.persistent = true;
  open.granted(answer, nullptr);
  CHECK(open.key == key_of(1, 2, {3, 4}));
  CHECK(open.caching == (kReadCaching | kWriteCaching));
  CHECK(open.oplock == OplockLevel::exclusive);
  CHECK(open.end_of_file == 100);
  CHECK(open.confirmed_bytes == 100);
  CHECK(open.allocation_bytes == 200);
  CHECK(open.durable);
  CHECK(open.outlasts_breaks);
}

TEST_CASE("a broken oplock leaves the caching of its new level, and nothing if we requested it") {
  Open open;
  open.oplock = OplockLevel::batch;
  open.caching = kReadCaching | kWriteCaching | kHandleCaching;
  SECTION("the client's") {
    open.broken(OplockLevel::level_ii);
    CHECK(open.caching == kReadCaching);
  }
  SECTION("ours") {
    open.on_behalf = true;
    open.broken(OplockLevel::level_ii);
    CHECK(open.caching == lease_state::none);
  }
  SECTION("after caching was given up") {
    open.caching = lease_state::none;
    open.broken(OplockLevel::level_ii);
    CHECK(open.caching == lease_state::none);
  }
  CHECK(open.oplock == OplockLevel::level_ii);
  CHECK(open.break_pending);
  open.broken(OplockLevel::none);
  CHECK_FALSE(open.break_pending);  // a broken level II needs no acknowledgement
}

TEST_CASE("a confirmed write beyond the largest offset confirms nothing") {
  Open open;
  open.confirm(100, 20);
  CHECK(open.confirmed_bytes == 120);
  open.confirm(10, 5);
  CHECK(open.confirmed_bytes == 120);
  open.confirm(~std::uint64_t{0}, 2);
  CHECK(open.confirmed_bytes == 120);
}
