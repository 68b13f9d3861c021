// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/open_table.h"

#include <catch2/catch.hpp>

namespace longhaul::smb::smb1::testing {
namespace {

Open file_opened(std::uint16_t fid, std::uint16_t tid = 1, std::uint16_t uid = 1) {
  Open open;
  open.fid = fid;
  open.tid = tid;
  open.uid = uid;
  open.key = key_of(uid, tid, fid);
  return open;
}

TEST_CASE("SMB1: an open is found by its FID, by its whole key and by its serial") {
  OpenTable table;
  const Open* added = table.add(file_opened(7));
  REQUIRE(added);
  CHECK(table.find(std::uint16_t{7}) == added);
  CHECK(table.find(key_of(1, 1, 7)) == added);
  CHECK(table.find(key_of(1, 2, 7)) == nullptr);  // not of that tree
  CHECK(table.find(std::uint16_t{8}) == nullptr);
  CHECK(table.find_serial(added->serial) == added);
  CHECK_FALSE(table.remove(key_of(2, 1, 7)));
  CHECK(table.remove(key_of(1, 1, 7)));
  CHECK_FALSE(table.remove(key_of(1, 1, 7)));
}

TEST_CASE("SMB1: an open in place of another of the same FID is told apart by its serial") {
  OpenTable table;
  const std::uint64_t first = table.add(file_opened(7))->serial;
  const std::uint64_t second = table.add(file_opened(7))->serial;
  CHECK(first != second);
  CHECK(table.find_serial(first) == nullptr);
  CHECK(table.all().size() == 1);
}

TEST_CASE("SMB1: no more opens are tracked than there is room for, but a FID may be used again") {
  OpenTable table;
  for (std::size_t fid = 0; fid < OpenTable::kMostOpens; ++fid) {
    REQUIRE(table.has_room_for(1));
    REQUIRE(table.add(file_opened(static_cast<std::uint16_t>(fid))));
  }
  CHECK_FALSE(table.has_room_for(1));
  CHECK(table.add(file_opened(60'000)) == nullptr);
  CHECK(table.add(file_opened(3)) != nullptr);
  CHECK(table.all().size() == OpenTable::kMostOpens);
}

TEST_CASE("SMB1: what ends many opens at once removes those and no others") {
  OpenTable table;
  for (std::uint16_t fid = 1; fid <= 6; ++fid) table.add(file_opened(fid, fid % 2));
  std::vector<Open> removed;
  table.remove_where([](const Open& open) { return open.tid == 1; }, removed);
  CHECK(removed.size() == 3);
  CHECK(table.all().size() == 3);
  for (const Open& open : removed) CHECK(table.find(open.fid) == nullptr);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
