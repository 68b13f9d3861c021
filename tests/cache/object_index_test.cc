// SPDX-License-Identifier: Apache-2.0
#include "cache/object_index.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "cache/files.h"

namespace longhaul::cache {
namespace {

using Ids = std::vector<ObjectIndex::Id>;

ObjectIndex::Entry indexed(const std::string& name, std::uint32_t bytes, const std::string& tag = "tag") {
  ObjectIndex::Entry made{.object = {.label = {.name = object_name(name), .tag = {}, .bytes = bytes}}};
  append(made.object.label.tag, as_bytes(tag));
  made.is_sure = true;
  return made;
}

TEST_CASE("object index: the objects of a name are listed from the oldest, and no others") {
  ObjectIndex index;
  index.add(7, indexed("a", 10));
  index.add(3, indexed("a", 20));
  index.add(5, indexed("b", 30));
  CHECK(index.of_name(object_name("a")) == Ids{3, 7});
  CHECK(index.of_name(object_name("c")).empty());
  CHECK(index.at(3).object.label.bytes == 20);
  CHECK(index.find(4) == nullptr);
  index.remove(3);
  CHECK(index.of_name(object_name("a")) == Ids{7});
  CHECK(index.find(3) == nullptr);
  CHECK(index.size() == 2);
}

TEST_CASE("object index: the one that was not used for longest goes first") {
  ObjectIndex index;
  for (ObjectIndex::Id id : {1, 2, 3}) index.add(id, indexed(std::to_string(id), 1));
  CHECK(index.least_recently_used() == 1);
  index.was_used(1);
  CHECK(index.least_recently_used() == 2);
  index.remove(2);
  CHECK(Ids(index.by_use().begin(), index.by_use().end()) == Ids{3, 1});
}

TEST_CASE("object index: what is written and what is certain is kept for each") {
  ObjectIndex index;
  index.add(1, indexed("a", 1));
  CHECK_FALSE(index.at(1).is_written);
  index.was_written(1);
  CHECK(index.at(1).is_written);
  CHECK(index.at(1).is_sure);
  index.doubt_all();
  CHECK_FALSE(index.at(1).is_sure);
  CHECK(index.at(1).is_written);
}

TEST_CASE("object index: disk and memory are counted, and agree with a plain sum after any operations") {
  std::mt19937 random(5);
  ObjectIndex index;
  std::map<ObjectIndex::Id, ObjectIndex::Entry> plain;
  for (ObjectIndex::Id next = 1; next < 2'000; ++next) {
    const auto made = indexed(std::to_string(random() % 50), static_cast<std::uint32_t>(random() % 100'000),
                              std::string(random() % 100, 't'));
    index.add(next, made);
    plain.emplace(next, made);
    if (plain.size() > 20 || random() % 3 == 0) {
      auto gone = std::next(plain.begin(), static_cast<std::ptrdiff_t>(random() % plain.size()));
      index.remove(gone->first);
      plain.erase(gone);
    }
    std::uint64_t disk = 0, tags = 0;
    for (const auto& [id, each] : plain) {
      disk += disk_bytes(object_file_bytes(each.object.label.bytes));
      tags += each.object.label.tag.size();
    }
    REQUIRE(index.disk_bytes() == disk);
    REQUIRE(index.memory_bytes() - tags == plain.size() * ObjectIndex::memory_bytes_of({}));
    REQUIRE(index.size() == plain.size());
  }
  while (!index.empty()) index.remove(index.least_recently_used());
  CHECK(index.disk_bytes() == 0);
  CHECK(index.memory_bytes() == 0);
}

}  // namespace
}  // namespace longhaul::cache
