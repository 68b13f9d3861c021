// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/open_table.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

constexpr std::uint32_t kAll = lease_state::read | lease_state::write | lease_state::handle;

struct Table {
  Files files;
  OpenTable table;

  std::unique_ptr<Open> granted(std::uint64_t id, SessionId session = 1, TreeId tree = 1) {
    auto open = std::make_unique<Open>();
    open->session = session;
    open->tree = tree;
    open->file = {id, id};
    open->key = key_of(session, tree, open->file);
    open->name = {.tree = tree, .path = u"NAME"};
    open->group = files.group_of(open->name);
    open->caching = kAll;
    return open;
  }
  Open& add(std::uint64_t id, SessionId session = 1, TreeId tree = 1) {
    return table.add(granted(id, session, tree));
  }
  Open& add_under(std::uint64_t id, const Lease& lease, std::uint32_t caching) {
    auto open = granted(id);
    open->caching = caching;
    table.share_lease(*open, lease);
    return table.add(std::move(open));
  }
  std::size_t opens_of_group() {
    return files.group_of({.tree = 1, .path = u"NAME"})->count(&FileCounts::opens);
  }
};

Lease lease(unsigned n, std::uint32_t flags = 0) {
  Lease lease;
  lease.key[0] = std::byte(n);
  lease.flags = flags;
  return lease;
}

std::vector<std::uint64_t> ids(const std::vector<FileId>& files) {
  std::vector<std::uint64_t> ids;
  for (const FileId& file : files) ids.push_back(file.volatile_part);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

TEST_CASE("an open is found by its id and by its whole key") {
  Table t;
  Open& open = t.add(5);
  CHECK(t.table.find(open.file) == &open);
  CHECK(t.table.find(open.key) == &open);
  CHECK(t.table.find(key_of(2, 1, open.file)) == nullptr);  // the number in another session
  CHECK(t.opens_of_group() == 1);
  const auto removed = t.table.remove(open.file);
  CHECK(removed.get() == &open);
  CHECK(t.table.find(FileId{5, 5}) == nullptr);
  CHECK(t.table.remove({5, 5}) == nullptr);
  CHECK(t.opens_of_group() == 0);
}

TEST_CASE("opens are listed by tree, and by session across its trees") {
  Table t;
  t.add(1, 1, 1), t.add(2, 1, 2), t.add(3, 2, 1), t.add(4, 1, ~TreeId{0});
  CHECK(ids(t.table.in(1, 1)) == std::vector<std::uint64_t>{1});
  CHECK(ids(t.table.in(1, std::nullopt)) == std::vector<std::uint64_t>{1, 2, 4});
  CHECK(ids(t.table.in(3, std::nullopt)).empty());
  (void)t.table.remove({2, 2});
  CHECK(ids(t.table.in(1, std::nullopt)) == std::vector<std::uint64_t>{1, 4});
}

TEST_CASE("opens of a tree that the client leaves are closing, and those that follow are not") {
  Table t;
  Open &first = t.add(1), &elsewhere = t.add(2, 1, 2);
  t.table.leave(1, 1);
  CHECK(first.closing);
  CHECK_FALSE(elsewhere.closing);
  first.closing = false;
  Open& second = t.add(3);
  t.table.leave(1, 1);
  CHECK_FALSE(first.closing);  // it was reported before
  CHECK(second.closing);
  CHECK(ids(t.table.in(1, 1)) == std::vector<std::uint64_t>{1, 3});
}

TEST_CASE("a session that is set up again leaves no caching to what is open, in that session alone") {
  Table t;
  Open &before = t.add(1), &other = t.add(2, 2);
  t.table.restarted(1);
  Open& after = t.add(3);
  CHECK(before.caching == lease_state::none);
  CHECK(other.caching == kAll);
  CHECK(after.caching == kAll);
}

TEST_CASE("a session that is set up again has no effect on a number that another session uses since") {
  Table t;
  for (std::uint64_t n = 1; n <= 1000; ++n) {
    t.add(n);
    (void)t.table.remove({n, n});
  }
  Open& reused = t.add(1000, 2);  // the number, in another session
  t.table.restarted(1);
  CHECK(reused.caching == kAll);
  CHECK(t.table.name_bytes() == reused.name_bytes());
}

TEST_CASE("opens under one lease have its newest state") {
  Table t;
  Open& first = t.add_under(1, lease(1), lease_state::read);
  CHECK_FALSE(first.was_write_cached);
  Open& second = t.add_under(2, lease(1, lease_flags::break_in_progress), kAll);
  CHECK(first.caching == kAll);
  CHECK(first.was_write_cached);
  CHECK(first.break_pending);
  CHECK(second.break_pending);
  CHECK(ids(t.table.sharers(lease(1).key)) == std::vector<std::uint64_t>{1, 2});
  CHECK(t.table.sharers(lease(2).key).empty());
  (void)t.table.remove({1, 1});
  CHECK(t.table.is_shared(lease(1).key));
  (void)t.table.remove({2, 2});
  CHECK_FALSE(t.table.is_shared(lease(1).key));
}

TEST_CASE("only so many opens share the caching of a lease, and it is shared until the last is closed") {
  Table t;
  for (std::uint64_t n = 1; n <= OpenTable::kMostSharers; ++n) t.add_under(n, lease(1), kAll);
  Open& beyond = t.add_under(500, lease(1), kAll);
  CHECK(beyond.caching == lease_state::none);
  CHECK(t.table.sharers(lease(1).key).size() == OpenTable::kMostSharers);
  for (std::uint64_t n = 1; n <= OpenTable::kMostSharers; ++n) (void)t.table.remove({n, n});
  CHECK(t.table.is_shared(lease(1).key));
  (void)t.table.remove({500, 500});
  CHECK_FALSE(t.table.is_shared(lease(1).key));
}

TEST_CASE("the memory of names follows a rename and ends with the open") {
  Table t;
  Open& open = t.add(1);
  CHECK(t.table.name_bytes() == 8);
  t.table.moved(open, u"another");
  CHECK(t.table.name_bytes() == 8 + 14);
  t.table.moved(open, u"b");
  CHECK(t.table.name_bytes() == 8 + 2);
  (void)t.table.remove({1, 1});
  CHECK(t.table.name_bytes() == 0);
}

TEST_CASE("the table is full at its limit") {
  Table t;
  for (std::uint64_t n = 0; n < OpenTable::kMostOpens; ++n) t.add(n);
  CHECK(t.table.is_full());
  (void)t.table.remove({0, 0});
  CHECK_FALSE(t.table.is_full());
}

TEST_CASE("a break of an oplock reduces one open, and that of a lease all that share it") {
  Table t;
  Open& alone = t.add(1);
  alone.oplock = OplockLevel::batch;
  CHECK(t.table.broken(OplockBreak{.level = OplockLevel::level_ii, .file = alone.file}) ==
        std::vector<Open*>{&alone});
  CHECK(alone.caching == lease_state::read);
  CHECK(t.table.broken(OplockBreak{.level = OplockLevel::none, .file = {99, 99}}).empty());

  Open &first = t.add_under(2, lease(1), kAll), &second = t.add_under(3, lease(1), kAll);
  LeaseBreakNotification notification;
  notification.key = lease(1).key;
  notification.new_state = lease_state::read;
  notification.needs_acknowledgement = true;
  CHECK(t.table.broken(notification) == std::vector<Open*>{&first, &second});
  for (const Open* open : {&first, &second}) {
    CHECK(open->caching == lease_state::read);
    CHECK(open->break_pending);
  }
  notification.key = lease(2).key;
  CHECK(t.table.broken(notification).empty());
}

TEST_CASE("a break is pending until its acknowledgement is answered") {
  Table t;
  Open& alone = t.add(1);
  alone.oplock = OplockLevel::batch;
  (void)t.table.broken(OplockBreak{.level = OplockLevel::level_ii, .file = alone.file});
  CHECK(alone.break_pending);
  t.table.acknowledged(OplockBreak{.level = OplockLevel::none, .file = {99, 99}});
  CHECK(alone.break_pending);
  t.table.acknowledged(OplockBreak{.level = OplockLevel::none, .file = alone.file});
  CHECK_FALSE(alone.break_pending);
  CHECK(alone.oplock == OplockLevel::none);

  Open& shared = t.add_under(2, lease(1, lease_flags::break_in_progress), kAll);
  LeaseBreakAcknowledgement answer;
  answer.key = lease(2).key;
  t.table.acknowledged(answer);
  CHECK(shared.break_pending);
  answer.key = lease(1).key;
  t.table.acknowledged(answer);
  CHECK_FALSE(shared.break_pending);
}

TEST_CASE("an open counts for the group of its name, also after that has changed") {
  Table t;
  Open& open = t.add(1);
  CHECK(t.opens_of_group() == 1);
  t.table.regroup(open, t.files.group_of({.tree = 1, .path = u"OTHER"}));
  CHECK(t.opens_of_group() == 0);
  CHECK(open.group->count(&FileCounts::opens) == 1);
  t.table.regroup(open, open.group);
  CHECK(open.group->count(&FileCounts::opens) == 1);
  const FileGroupRef other = open.group;
  (void)t.table.remove({1, 1});
  CHECK(other->count(&FileCounts::opens) == 0);
}
