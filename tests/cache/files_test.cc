// SPDX-License-Identifier: Apache-2.0
#include "cache/files.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/proxy/temporary_folder.h"

using namespace longhaul;
using namespace longhaul::cache;

TEST_CASE("what is written in many calls is read as one, however large its parts are") {
  TemporaryFolder folder;
  Files& files = system_files();
  const std::string path = (folder.path() / "record").string();
  std::mt19937_64 random(1);
  std::vector<Buffer> parts;
  Buffer all;
  for (const std::size_t size : {std::size_t{3}, std::size_t{0}, std::size_t{700'001}, std::size_t{256} << 10,
                                 (std::size_t{256} << 10) + 1, std::size_t{1}, std::size_t{90'000},
                                 std::size_t{90'000}, std::size_t{90'000}}) {
    Buffer& part = parts.emplace_back(size);
    for (std::byte& byte : part) byte = static_cast<std::byte>(random());
    append(all, part);
  }
  const std::vector<Bytes> views(parts.begin(), parts.end());
  REQUIRE(files.write(path, views));
  Buffer got(all.size());
  const std::array<MutableBytes, 1> into{MutableBytes(got)};
  REQUIRE(files.read(path, 0, into));
  CHECK(got == all);
  CHECK(std::filesystem::file_size(path) == all.size());
}
