// SPDX-License-Identifier: Apache-2.0
#include "cache/files.h"

#include <catch2/catch.hpp>
#include <random>

#include "cache/error.h"
#include "tests/proxy/temporary_folder.h"

using namespace longhaul;
using namespace longhaul::cache;

TEST_CASE("data written in several calls is read back whole, whatever the size of the parts") {
  TemporaryFolder folder;
  Files& files = system_files();
  const std::string path = (folder.path() / "record").string();
  std::mt19937_64 random(1);
  std::vector<Buffer> parts;
  Buffer all;
  for (const std::size_t size :
       {std::size_t{3}, std::size_t{700'001}, std::size_t{256} << 10, (std::size_t{256} << 10) + 1,
        std::size_t{1}, std::size_t{90'000}, std::size_t{90'000}, std::size_t{90'000}}) {
    Buffer& part = parts.emplace_back(size);
    for (std::byte& byte : part) byte = static_cast<std::byte>(random());
    append(all, part);
  }
  std::size_t next = 0;
  REQUIRE(files.write(
      path, [&]() -> Result<Bytes> { return next < parts.size() ? Bytes(parts[next++]) : Bytes(); }));
  Buffer got(all.size());
  const std::array<MutableBytes, 1> into{MutableBytes(got)};
  REQUIRE(files.read(path, 0, into));
  CHECK(got == all);
  CHECK(std::filesystem::file_size(path) == all.size());
}

TEST_CASE("an error from the content ends the write and is returned") {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "record").string();
  const auto error = make_error_code(StoreError::wrong_digest);
  CHECK(system_files().write(path, [&]() -> Result<Bytes> { return error; }).error() == error);
}

TEST_CASE("symbolic links are followed neither for writing nor for reading") {
  TemporaryFolder folder;
  folder.write("victim", "before");
  const std::string link = (folder.path() / "link").string();
  std::filesystem::create_symlink(folder.path() / "victim", link);
  CHECK_FALSE(system_files().write(link, [] { return Result<Bytes>(); }));
  std::array<std::byte, 6> got{};
  const std::array<MutableBytes, 1> into{MutableBytes(got)};
  CHECK_FALSE(system_files().read(link, 0, into));
  std::string taken_by;
  CHECK_FALSE(DirectoryLock::take(link, taken_by).has_value());
  CHECK(folder.read("victim") == "before");
}
