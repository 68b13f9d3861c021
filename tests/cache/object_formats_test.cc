// SPDX-License-Identifier: Apache-2.0
// The bytes of an object's file and of the list of objects, against golden/abc.object and golden/abc.list,
// which another program made by FORMAT.md.
#include <catch2/catch.hpp>
#include <fstream>

#include "cache/object_file.h"
#include "tests/cache/keys.h"
#include "tests/proxy/temporary_folder.h"

namespace longhaul::cache {
namespace {

using test::known_key;
using test::known_salt;

constexpr std::uint64_t kNumber = 7;

std::string golden_file(const std::string& name) { return LONGHAUL_SOURCE_DIR "/tests/cache/golden/" + name; }

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ObjectLabel abc_label() {
  ObjectLabel label{.name = object_name("name"), .bytes = 3};
  for (int each : {1, 2, 3}) label.tag.push_back(std::byte(each));
  return label;
}

}  // namespace

TEST_CASE("an object's file matches the format, byte for byte") {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "file").string();
  // However its content is cut.
  const std::vector<Slice> parts{Slice::copy_of(as_bytes("a")), Slice::copy_of(as_bytes("bc"))};
  REQUIRE(write_object(system_files(), path, known_key(), known_salt(), kNumber, abc_label(), parts));
  const std::string written = bytes_of(path);
  CHECK(written.size() == object_file_bytes(3));
  CHECK(written == bytes_of(golden_file("abc.object")));
}

TEST_CASE("objects that another program has written are read") {
  const std::string path = golden_file("abc.object");
  const auto found = read_label(system_files(), path, known_key(), kNumber, object_file_bytes(3));
  REQUIRE(found.has_value());
  CHECK(found->label == abc_label());
  CHECK(found->salt == known_salt());
  const auto content = read_object(system_files(), path, known_key(), kNumber, *found);
  REQUIRE(content.has_value());
  CHECK(as_text(content->bytes()) == "abc");
  CHECK_FALSE(read_label(system_files(), path, known_key(), kNumber + 1, object_file_bytes(3)).has_value());
}

TEST_CASE("a list that another program has written is read") {
  const std::string path = golden_file("abc.list");
  const auto list = read_list(system_files(), path, known_key(), bytes_of(path).size());
  REQUIRE(list.has_value());
  CHECK(list->boot == "boot 1");
  CHECK(list->objects == std::vector<ListedObject>{{.number = kNumber, .salt = known_salt()}});
  // Of the same size, written here.
  TemporaryFolder folder;
  const std::string own = (folder.path() / "list").string();
  REQUIRE(write_list(system_files(), own, known_key(), *list));
  CHECK(bytes_of(own).size() == bytes_of(path).size());
}

}  // namespace longhaul::cache
