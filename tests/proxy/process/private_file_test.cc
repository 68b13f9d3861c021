// SPDX-License-Identifier: Apache-2.0
#include "proxy/process/private_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "proxy/temporary_folder.h"

using namespace longhaul;
using namespace longhaul::process;
namespace fs = std::filesystem;

namespace {

unsigned permissions_of(const fs::path& file) { return static_cast<unsigned>(fs::status(file).permissions()); }

}  // namespace

TEST_CASE("a private file is written whole, with mode 0600 whatever the umask, and read up to a limit") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "file";
  for (const mode_t mask : {0u, 0777u}) {
    const mode_t before = ::umask(mask);
    const auto replaced = replace_private_file(file, "bytes");
    ::umask(before);
    CHECK(replaced.has_value());
    CHECK(permissions_of(file) == 0600);
  }
  CHECK(read_private_file(file, 100)->text == "bytes");
  CHECK(read_private_file(file, 3)->text == "byt");
  CHECK((read_private_file(file, 100)->mode & 07777) == 0600);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  CHECK(make_private_file(file, "others").error() == boost::system::errc::file_exists);
  CHECK(folder.read("file") == "bytes");
  CHECK(read_private_file(folder.path() / "none", 1).error() == boost::system::errc::no_such_file_or_directory);
}

TEST_CASE("a planted symbolic link is replaced and never followed") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "file", target = folder.path() / "target";
  folder.write("target", "somebody's");
  fs::create_symlink(target, file);
  fs::create_symlink(target, folder.path() / "file.new");
  CHECK(reason_of(read_private_file(file, 100).error()) == "it is a symbolic link");
  CHECK(make_private_file(file, "bytes").error() == boost::system::errc::file_exists);
  CHECK(folder.read("target") == "somebody's");
  CHECK(replace_private_file(file, "bytes").has_value());
  CHECK(folder.read("target") == "somebody's");
  CHECK_FALSE(fs::is_symlink(file));
  CHECK(folder.read("file") == "bytes");
}

TEST_CASE("only regular files are read, and the attempt never blocks") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK(reason_of(read_private_file(folder.path() / "pipe", 100).error()) == "it is not a regular file");
  CHECK(reason_of(read_private_file(folder.path(), 100).error()) == "it is not a regular file");
  CHECK_FALSE(replace_private_file(folder.path() / "none" / "file", "bytes").has_value());
}
