// SPDX-License-Identifier: Apache-2.0
// Where the dictionary's key comes from, and that one which may be known to others is not used.
#include "cache/key_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "cache/error.h"
#include "tests/proxy/temporary_folder.h"

namespace longhaul::cache {
namespace {

namespace fs = std::filesystem;

// What a key makes of nothing: the same for the same key only.
std::string mark_of(const DictionaryKey& key) {
  std::string tag(kAeadTagBytes, '\0');
  REQUIRE(key.cipher("test", Salt{}, Aead::Use::seal)
              ->seal_whole(part_nonce(0), std::array<unsigned char, 1>{}, {},
                           reinterpret_cast<unsigned char*>(tag.data())));
  return tag;
}

std::string loaded(const KeyFile& file, bool replaced = false) {
  std::string note;
  auto key = file.load_or_make(note);
  REQUIRE(key.has_value());
  CAPTURE(note);
  CHECK(note.empty() == !replaced);
  return mark_of(*key);
}

TEST_CASE("a key is created once, readable by its owner only, and then stays the same") {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "key").string();
  const std::string first = loaded(KeyFile(path));
  struct stat about {};
  REQUIRE(::stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0600);
  CHECK(about.st_size == 32);
  CHECK(loaded(KeyFile(path)) == first);
  fs::remove(path);
  CHECK(loaded(KeyFile(path)) != first);
}

TEST_CASE("a key that other users may have read or chosen is replaced, and the reason is logged") {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "key";
  const KeyFile file(path.string());
  const std::string first = loaded(file);
  SECTION("others can read it") { fs::permissions(path, fs::perms(0640)); }
  SECTION("it is a link") {
    fs::rename(path, folder.path() / "elsewhere");
    fs::create_symlink(folder.path() / "elsewhere", path);
  }
  SECTION("it has another hard link") { fs::create_hard_link(path, folder.path() / "elsewhere"); }
  SECTION("it is too short") { fs::resize_file(path, 31); }
  SECTION("it is too long") { fs::resize_file(path, 33); }
  SECTION("it is empty, as after a crash") { fs::resize_file(path, 0); }
  SECTION("it is a pipe") {
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  }
  const std::string elsewhere = fs::exists(folder.path() / "elsewhere") ? folder.read("elsewhere") : "";
  const std::string second = loaded(file, true);
  CHECK(second != first);
  CHECK(loaded(file) == second);
  CHECK(fs::is_regular_file(fs::symlink_status(path)));
  if (!elsewhere.empty()) CHECK(folder.read("elsewhere") == elsewhere);  // not ours to overwrite
}

TEST_CASE("a key of another user is replaced unless the folder is that user's too") {
  if (::geteuid() != 0) return;
  TemporaryFolder folder;
  const fs::path path = folder.path() / "key";
  const KeyFile file(path.string());
  const std::string first = loaded(file);
  REQUIRE(::chown(path.c_str(), 12'345, 12'345) == 0);
  REQUIRE(::chown(folder.path().c_str(), 12'345, 12'345) == 0);
  CHECK(loaded(file) == first);
  REQUIRE(::chown(folder.path().c_str(), 0, 0) == 0);
  CHECK(loaded(file, true) != first);
}

TEST_CASE("a destroyed key is overwritten in its file, and the next key differs") {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "key").string();
  const KeyFile file(path);
  const std::string first = loaded(file);
  const std::string bytes = folder.read("key");
  std::ifstream open_before(path, std::ios::binary);  // reads the file that was there, whatever its name
  REQUIRE(file.destroy());
  CHECK_FALSE(fs::exists(path));
  CHECK(std::string(std::istreambuf_iterator<char>(open_before), {}) != bytes);
  REQUIRE(file.destroy());
  CHECK(loaded(file) != first);
}

TEST_CASE("the key is derived from both the credential and the file, if there is a credential") {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "key").string();
  auto credential = [&](const std::string& name, const std::string& text) {
    folder.write(name, text);
    return (folder.path() / name).string();
  };
  const std::string a = credential("a", std::string(32, 'a')), b = credential("b", std::string(4096, 'b'));
  const std::string without = loaded(KeyFile(path)), with_a = loaded(KeyFile(path, a));
  CHECK(with_a != without);
  CHECK(loaded(KeyFile(path, a)) == with_a);
  CHECK(loaded(KeyFile(path, b)) != with_a);
  REQUIRE(KeyFile(path, a).destroy());
  CHECK(loaded(KeyFile(path, a)) != with_a);
  CHECK_THROWS_WITH(KeyFile(path, credential("short", std::string(31, 'c'))), Catch::Contains("too short"));
  CHECK_THROWS_WITH(KeyFile(path, (folder.path() / "none").string()), Catch::Contains("cannot be read"));
}

TEST_CASE("an unwritable folder gives an error, not an exception") {
  std::string note;
  CHECK_FALSE(KeyFile("/proc/no-such-folder/key").load_or_make(note).has_value());
  TemporaryFolder folder;
  fs::create_directories(folder.path() / "key/inside");  // a folder where the key should be
  CHECK_FALSE(KeyFile((folder.path() / "key").string()).load_or_make(note).has_value());
}

}  // namespace
}  // namespace longhaul::cache
