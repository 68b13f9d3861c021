// SPDX-License-Identifier: Apache-2.0
#include "proxy/process/own_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "proxy/temporary_folder.h"

using namespace longhaul;
using namespace longhaul::process;
namespace fs = std::filesystem;

namespace {

Account self() { return {name_of(::geteuid()), ::geteuid(), ::getegid()}; }

std::string sentence(const fs::path& directory, uid_t user = ::geteuid()) {
  try {
    (void)check_directory(directory, user);
  } catch (const UnsafeDirectory& error) {
    return error.what();
  }
  return "safe";
}

mode_t mode(const fs::path& path) {
  struct stat about {};
  REQUIRE(::lstat(path.c_str(), &about) == 0);
  return about.st_mode & 07777;
}

uid_t owner(const fs::path& path) {
  struct stat about {};
  REQUIRE(::lstat(path.c_str(), &about) == 0);
  return about.st_uid;
}

void change(const fs::path& path, mode_t mode) { REQUIRE(::chmod(path.c_str(), mode) == 0); }

}  // namespace

TEST_CASE("a directory that cannot be created is found out without leaving anything") {
  const TemporaryFolder folder;
  CHECK(process::why_not_made(folder.path()).empty());
  CHECK(process::why_not_made(folder.path() / "a" / "b").empty());
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(process::why_not_made("/proc/longhaul/state").find("cannot be created (/proc/longhaul)") != std::string::npos);
}

TEST_CASE("a directory that others may write is not safe, and neither are those below it") {
  const TemporaryFolder folder;
  const fs::path state = folder.path() / "above" / "state";
  fs::create_directories(state);
  change(folder.path() / "above", 0755);
  for (const mode_t wrong : {0777u, 0770u, 01777u, 0702u}) {
    change(state, wrong);
    CHECK_THAT(sentence(state), Catch::Contains(state.string()) && Catch::Contains("chmod 700"));
  }
  for (const mode_t right : {0700u, 0755u, 0500u}) {
    change(state, right);
    CHECK(sentence(state) == "safe");
  }
  change(folder.path() / "above", 0777);
  CHECK_THAT(sentence(state), Catch::Contains("above is writable by other users"));
  change(folder.path() / "above", 01777);  // in it, users cannot rename others' files
  CHECK(sentence(state) == "safe");
}

TEST_CASE("a missing path is safe if its last existing directory is") {
  const TemporaryFolder folder;
  CHECK(sentence(folder.path() / "lib" / "longhaul") == "safe");
  change(folder.path(), 0777);
  CHECK_THAT(sentence(folder.path() / "lib" / "longhaul"), Catch::Contains("is writable by other users"));
}

TEST_CASE("symbolic links in a path are followed and checked, and the resolved path is used") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "there" / "state");
  fs::create_directory_symlink("there", folder.path() / "here");
  fs::create_directory_symlink(folder.path() / "here" / "state", folder.path() / "link");
  const auto real = fs::canonical(folder.path() / "there" / "state");
  CHECK(check_directory(folder.path() / "link", ::geteuid()) == real);
  CHECK(check_directory(folder.path() / "here" / ".." / "there" / "state", ::geteuid()) == real);
  change(folder.path() / "there", 0777);
  CHECK_THAT(sentence(folder.path() / "link"), Catch::Contains("there is writable by other users"));
  fs::create_directory_symlink("loop", folder.path() / "loop");
  CHECK_THAT(sentence(folder.path() / "loop"), Catch::Contains("broken symbolic link"));
  folder.write("file", "");
  CHECK_THAT(sentence(folder.path() / "file"), Catch::Contains("is a file"));
}

TEST_CASE("a prepared directory exists, is closed to others, and its parents are passable") {
  const TemporaryFolder folder;
  const mode_t before = ::umask(077);
  const auto made = prepare_directory(folder.path() / "lib" / "longhaul", self(), {});
  ::umask(before);
  CHECK(mode(made) == 0700);
  CHECK(mode(folder.path() / "lib") == 0755);
  change(made, 0755);
  folder.write("lib/longhaul/anything", "");
  (void)prepare_directory(made, self(), {});  // its owner's: what is in it does not matter
  CHECK(mode(made) == 0700);
}

TEST_CASE("root changes the owner of its own directory only together with the daemon's files") {
  if (::geteuid() != 0) return;
  const Account other{"other", 12345, 12345};
  const TemporaryFolder folder;
  change(folder.path(), 0755);
  const fs::path state = folder.path() / "state";
  fs::create_directories(state / "dictionary" / "segments");
  folder.write("state/dictionary/segments/1", "bytes");
  folder.write("state/token", "bytes");
  folder.write("state/somebody's", "bytes");
  folder.write("outside", "bytes");
  fs::create_symlink(folder.path() / "outside", state / "paths");
  fs::create_hard_link(folder.path() / "outside", state / "dictionary" / "2");
  CHECK_THROWS_WITH(prepare_directory(state, other, {"nothing"}), Catch::Contains("other files"));
  CHECK(owner(state) == 0);
  (void)prepare_directory(state, other, {"dictionary", "token", "paths"});
  for (const char* given : {"", "token", "dictionary", "dictionary/segments", "dictionary/segments/1"})
    CHECK(owner(state / given) == other.uid);
  CHECK(owner(folder.path() / "outside") == 0);
  CHECK(owner(state / "somebody's") == 0);
  (void)prepare_directory(state, other, {});  // it is the user's now
  CHECK_THAT(sentence(state, 0), Catch::Contains("12345") && Catch::Contains("chown"));
  CHECK_THAT(sentence(state, 54321), Catch::Contains("12345"));
}
