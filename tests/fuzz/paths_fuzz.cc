// SPDX-License-Identifier: Apache-2.0
// The file of paths: any bytes, and any lines under a right checksum. An accepted file is written again
// unchanged.
#include <xxhash.h>

#include <cstdio>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/link/udp/path_book.h"

namespace longhaul::fuzz::paths_target {
using longhaul::link::udp::PathBook;

namespace {

void check(const std::string& text) {
  const auto book = PathBook::parse(text);
  if (!book) return;
  const auto again = PathBook::parse(book->text());
  longhaul::fuzz::require(again && again->text() == book->text() &&
                          book->text().size() <= PathBook::kMostBytes);
}

}  // namespace

FUZZ_TARGET(paths) {
  std::string text(reinterpret_cast<const char*>(data), size);
  check(text);
  char sum[32];
  std::snprintf(sum, sizeof sum, "sum %016llx\n",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  check(text + sum);
  return 0;
}

}  // namespace longhaul::fuzz::paths_target
