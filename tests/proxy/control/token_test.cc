// SPDX-License-Identifier: Apache-2.0
// Tests how the token is made, kept and read back.
#include "proxy/control/token.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "proxy/temporary_folder.h"

using namespace longhaul::control;
namespace fs = std::filesystem;

namespace {

unsigned mode(const fs::path& path) { return static_cast<unsigned>(fs::status(path).permissions()) & 0777u; }

void write(const fs::path& file, const std::string& text, fs::perms permissions) {
  std::ofstream(file) << text;
  fs::permissions(file, permissions);
}

constexpr auto kOwner = fs::perms::owner_read | fs::perms::owner_write;

}  // namespace

TEST_CASE("a missing token is created with its directory, for the owner only, and then stays the same") {
  const longhaul::TemporaryFolder scratch;
  const auto state_dir = scratch.path() / "lib" / "longhaul";
  const auto token = load_or_make_token(state_dir, "control.token");
  CHECK(token.size() == 64);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(mode(state_dir) == 0700u);
  CHECK(mode(state_dir / "control.token") == 0600u);
  CHECK(load_or_make_token(state_dir, "control.token") == token);
  CHECK(*read_token(state_dir / "control.token") == token);
  CHECK(std::distance(fs::directory_iterator(state_dir), {}) == 1);
  CHECK(load_or_make_token(scratch.path() / "other", "control.token") != token);
}

TEST_CASE("a token file may be elsewhere") {
  const longhaul::TemporaryFolder scratch;
  const auto token = load_or_make_token(scratch.path() / "state", scratch.path() / "elsewhere" / "token");
  CHECK(*read_token(scratch.path() / "elsewhere" / "token") == token);
  CHECK_FALSE(fs::exists(scratch.path() / "state"));
}

TEST_CASE("a token that others may read, or that is invalid, stops the start with one sentence") {
  const longhaul::TemporaryFolder scratch;
  const auto file = scratch.path() / "control.token";
  const auto start = [&] { return load_or_make_token(scratch.path(), "control.token"); };
  write(file, std::string(64, 'a') + "\n", kOwner | fs::perms::group_read);
  CHECK_THROWS_WITH(start(), Catch::Contains(file.string()) && Catch::Contains("can be read by other users"));
  write(file, std::string(64, 'a') + "\n", kOwner);
  CHECK(start() == std::string(64, 'a'));
  for (const auto& text : {std::string(), std::string("short"), std::string(40, 'a') + " b",
                           std::string(600, 'a'), std::string(40, '\x80')}) {
    write(file, text, kOwner);
    CHECK_THROWS_WITH(start(), Catch::Contains("printable"));
  }
  fs::remove(file);
  fs::create_directory(file);
  fs::permissions(file, fs::perms::owner_all);
  CHECK_THROWS_WITH(start(), Catch::Contains("not a regular file"));
}

TEST_CASE("a state directory that cannot be created is named") {
  const longhaul::TemporaryFolder scratch;
  write(scratch.path() / "file", "", kOwner);
  CHECK_THROWS_WITH(load_or_make_token(scratch.path() / "file" / "state", "control.token"),
                    Catch::Contains((scratch.path() / "file").string()));
}

TEST_CASE("only the complete token is accepted") {
  CHECK(same_token("abc", "abc"));
  CHECK_FALSE(same_token("ab", "abc"));
  CHECK_FALSE(same_token("abcd", "abc"));
  CHECK_FALSE(same_token("", "abc"));
  CHECK_FALSE(same_token("", ""));
}
