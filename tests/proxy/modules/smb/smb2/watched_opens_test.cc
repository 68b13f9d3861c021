// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/watched_opens.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/notify_information.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {
namespace {

const TimePoint kClosed = TimePoint{} + std::chrono::seconds(100);

struct WatchedTable {
  WatchedTable() { connect(connection); }
  Open& open(std::string_view name, bool is_directory = false) {
    const std::uint64_t number = ++last;
    const Granted granted{.file = {number, number}, .attributes = is_directory ? 0x10u : 0x80u};
    CreateRequest create;
    if (is_directory) create.options = create_options::directory_file;
    return open_file(connection, 10 + number, name, granted, create);
  }
  WatchedOpens::Number add(const Open& open) {
    const FolderPath path = folder_path_of(open);
    const auto known = opens.folder(path);
    const auto folder = known ? *known : opens.add_folder(path);
    opens.add(folder, open);
    return folder;
  }
  WatchedOpens::Concerned concerned(WatchedOpens::Number folder, NotifyAction action, std::string_view name) {
    Buffer names;
    LittleEndianWriter out(names);
    const std::string wide = utf16(name);
    out.u32(0), out.u32(static_cast<std::uint32_t>(action)), out.u32(static_cast<std::uint32_t>(wide.size()));
    out.bytes(as_bytes(wide));
    return opens.concerned_by(folder, names, connection);
  }
  Connection connection;
  WatchedOpens opens;
  std::uint64_t last = 0;
};

}  // namespace

TEST_CASE("opens of one folder share its watch, a directory is its own folder") {
  WatchedTable table;
  const auto a = table.add(table.open("dir\\a")), b = table.add(table.open("dir\\b"));
  CHECK(a == b);
  CHECK(table.add(table.open("dir", true)) == a);
  CHECK(table.add(table.open("a")) != a);
  CHECK(table.opens.folders() == 2);
  CHECK(table.opens.opens() == 4);
  CHECK(table.opens.path_of(a).path == u"DIR");
  CHECK(table.opens.opens_in(a).size() == 3);
}

TEST_CASE("a change concerns the opens of its name and the listings of its folder") {
  WatchedTable table;
  const Open &a = table.open("dir\\a"), &again = table.open("dir\\a"), &b = table.open("dir\\b");
  const Open& listing = table.open("dir", true);
  const auto folder = table.add(a);
  for (const Open* each : {&again, &b, &listing}) table.add(*each);
  const auto modified = table.concerned(folder, NotifyAction::modified, "a");
  CHECK(modified.changed == WatchedOpens::Keys{a.key, again.key, listing.key});
  CHECK(modified.gone.empty());
  const auto renamed = table.concerned(folder, NotifyAction::renamed_from, "b");
  CHECK(renamed.changed == WatchedOpens::Keys{b.key, listing.key});
  CHECK(renamed.gone == std::vector{b.key});
  CHECK(table.concerned(folder, NotifyAction::added, "c").changed == WatchedOpens::Keys{listing.key});
  CHECK_FALSE(renamed.removes);
  CHECK(table.concerned(folder, NotifyAction::removed, "c").removes);
}

TEST_CASE("without readable names a change concerns every open of its folder") {
  WatchedTable table;
  const Open &a = table.open("dir\\a"), &elsewhere = table.open("b");
  const auto folder = table.add(a);
  table.add(elsewhere);
  CHECK(table.opens.concerned_by(folder, std::nullopt, table.connection).changed ==
        WatchedOpens::Keys{a.key});
  const std::string torn = "torn";
  CHECK(table.opens.concerned_by(folder, as_bytes(torn), table.connection).changed ==
        WatchedOpens::Keys{a.key});
  CHECK(table.opens.concerned_by(folder, std::nullopt, table.connection).removes);
}

TEST_CASE("an open that was removed is concerned by nothing, and its folder expires without opens") {
  WatchedTable table;
  const Open &a = table.open("dir\\a"), &b = table.open("dir\\b");
  const auto folder = table.add(a);
  table.add(b);
  table.opens.remove(kClosed, a.key);
  table.opens.remove(kClosed, a.key);  // once
  CHECK(table.concerned(folder, NotifyAction::modified, "a").changed.empty());
  CHECK_FALSE(table.opens.folder_of(a.key));
  CHECK_FALSE(table.opens.next_expiry());
  CHECK_FALSE(table.opens.unused_folder());
  CHECK_FALSE(table.opens.is_unused(folder));
  table.opens.remove(kClosed, b.key);
  CHECK(table.opens.is_unused(folder));
  CHECK(table.opens.unused_folder() == folder);
  CHECK(table.opens.next_expiry() == kClosed + WatchedOpens::kLinger);
  CHECK(table.opens.expired(kClosed + WatchedOpens::kLinger - std::chrono::milliseconds(1)).empty());
  CHECK(table.opens.expired(kClosed + WatchedOpens::kLinger) == std::vector{folder});
  table.opens.remove_folder(folder);
  CHECK(table.opens.folders() == 0);
  CHECK_FALSE(table.opens.is_unused(folder));  // gone
  CHECK(table.add(a) != folder);  // numbers are used once
}

TEST_CASE("unused folders that a name contains are found by whole parts of their paths") {
  WatchedTable table;
  const Open &used = table.open("used\\a"), &in_dir = table.open("dir\\a"), &deep = table.open("dir\\sub\\a");
  const Open& similar = table.open("dir2\\a");
  table.add(used);
  const auto dir = table.add(in_dir), sub = table.add(deep), other = table.add(similar);
  for (const Open* each : {&in_dir, &deep, &similar}) table.opens.remove(kClosed, each->key);
  CHECK(table.opens.unused_below({.tree = kTree, .path = u"DIR"}) == std::vector{dir, sub});
  CHECK(table.opens.unused_below({.tree = kTree, .path = u"DIR\\SUB"}) == std::vector{sub});
  CHECK(table.opens.unused_below({.tree = kTree, .path = u"USED"}).empty());
  CHECK(table.opens.unused_below({.tree = kTree, .path = {}}) == std::vector{dir, sub, other});
  // Another spelling of any of them.
  CHECK(table.opens.unused_below({.tree = kTree, .path = u"X", .exact = false}) ==
        std::vector{dir, sub, other});
}

}  // namespace longhaul::smb::smb2::test
