// SPDX-License-Identifier: Apache-2.0
// The file of lost writes: any bytes, and any lines under a right checksum. An accepted file is written again
// unchanged, and a site loads it within its bounds.
#include <xxhash.h>

#include <cstdio>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/promises/lost_book.h"
#include "proxy/modules/smb/lost_names.h"

namespace longhaul::fuzz::lost_book_target {
using namespace longhaul::promises;

namespace {

void check(const std::string& text) {
  const auto records = parse_lost_book(text);
  if (!records) return;
  const auto again = parse_lost_book(lost_book_text(*records));
  longhaul::fuzz::require(again && lost_book_text(*again) == lost_book_text(*records));
  LostWrites lost;
  lost.restore(*records);
  for (const LostWrites::Record& record : lost.records()) {
    (void)smb::display_name(record.file);
    longhaul::fuzz::require(lost.any(record.file.ends) && lost.take(record.file));
  }
  longhaul::fuzz::require(lost.waiting() == 0);
}

}  // namespace

FUZZ_TARGET(lost_book) {
  std::string text(reinterpret_cast<const char*>(data), size);
  check(text);
  char sum[32];
  std::snprintf(sum, sizeof sum, "sum %016llx\n",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  check(text + sum);
  return 0;
}

}  // namespace longhaul::fuzz::lost_book_target
