// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_book.h"

#include <catch2/catch.hpp>

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

const std::string kBranch = "sha256:" + std::string(64, 'a'), kOther = "sha256:" + std::string(64, '0');

PathBook two_paths() {
  PathBook book;
  book.put(kBranch, {6'480'000, 250'125us});
  book.put(kOther, {193'000, 1500ns});
  return book;
}

TEST_CASE("path measurements are read back as written") {
  const auto read = PathBook::parse(two_paths().text());
  REQUIRE(read);
  REQUIRE(read->find(kBranch));
  CHECK(read->find(kBranch)->rate == 6'480'000);
  CHECK(read->find(kBranch)->min_rtt == 250'125us);
  REQUIRE(read->find(kOther));
  CHECK(read->find(kOther)->min_rtt == 1500ns);
  CHECK_FALSE(read->find("sha256:" + std::string(64, 'f')));
  CHECK(read->text() == two_paths().text());
  CHECK(PathBook::parse(PathBook().text()));
}

TEST_CASE("later versions can read the text of a path book") {
  PathBook book;
  book.put("sha256:" + std::string(64, '1'), {6'480'000, 100ms});
  CHECK(book.text() ==
        "longhaul paths 1\nsha256:" + std::string(64, '1') + " 6480000 100000000\nsum 6e125e6bd1229b02\n");
}

TEST_CASE("a path book with any byte changed, missing or added is rejected") {
  const std::string text = two_paths().text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    INFO("byte " << i);
    CHECK_FALSE(PathBook::parse(text.substr(0, i)));
    for (const int bit : {1, 4, 16}) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ bit);
      CHECK_FALSE(PathBook::parse(changed));
    }
    CHECK_FALSE(PathBook::parse(text.substr(0, i) + "1" + text.substr(i)));
  }
  CHECK_FALSE(PathBook::parse(text + text));
  CHECK_FALSE(PathBook::parse(std::string(2 << 20, 'x')));
}

TEST_CASE("impossible values are not written to a path book") {
  PathBook book;
  book.put(kBranch, {0, 10ms});
  book.put(kBranch, {1'000, 0ms});
  book.put(kBranch, {1'000, -1ms});
  book.put(kBranch, {1'000, 61s});
  book.put(kBranch, {~std::uint64_t{0}, 10ms});
  book.put("two words", {1'000, 10ms});
  book.put("", {1'000, 10ms});
  CHECK(book.empty());
}

TEST_CASE("a path book never contains more paths than it can read") {
  PathBook book;
  for (std::size_t i = 0; i < PathBook::kMostPaths + 10; ++i)
    book.put("sha256:" + std::string(56, 'e') + std::to_string(10'000'000 + i), {1'000'000'000, 59s});
  const std::string text = book.text();
  CHECK(text.size() <= PathBook::kMostBytes);
  const auto read = PathBook::parse(text);
  REQUIRE(read);
  CHECK(read->text() == text);
}

TEST_CASE("small changes of a rate leave the path book unchanged") {
  PathBook changed = two_paths();
  CHECK(changed.resembles(two_paths()));
  changed.put(kBranch, {6'300'000, 251ms});
  CHECK(changed.resembles(two_paths()));
  changed.put(kBranch, {5'000'000, 251ms});
  CHECK_FALSE(changed.resembles(two_paths()));
  CHECK_FALSE(PathBook().resembles(two_paths()));
  CHECK_FALSE(two_paths().resembles(PathBook()));
}

}  // namespace
}  // namespace longhaul::link::udp
