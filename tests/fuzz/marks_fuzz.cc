// SPDX-License-Identifier: Apache-2.0
// What a daemon finds in the file of marks: any bytes, and any lines under right checksums. Each file that is
// still marked is a loss to tell, the file is written anew within its bounds, and its reader finds the same.
#include <xxhash.h>

#include <cstdio>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/promises/marks.h"

namespace longhaul::fuzz::marks_target {
using namespace longhaul::promises;

namespace {

void check(const std::string& text) {
  LostWrites lost;
  if (!lost.marks().restore(text)) return;
  lost.marks().on_new([] {});
  const auto batch = lost.marks().take();
  lost.marks().stored(true);
  longhaul::fuzz::require(batch.place == modules::Journal::Batch::Place::instead && batch.durable &&
                          batch.text.size() <= Marks::kMostFileBytes);
  LostWrites again;
  longhaul::fuzz::require(again.marks().restore(batch.text) && again.waiting() == lost.waiting() &&
                          again.marks().size() == lost.marks().size());
  for (const LostWrites::Record& record : lost.records()) {
    longhaul::fuzz::require(again.has_record(record.file));
    longhaul::fuzz::require(lost.take(record.file));
  }
  longhaul::fuzz::require(lost.marks().size() == 0);
}

}  // namespace

FUZZ_TARGET(marks) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text);
  std::string summed;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    // A line of the corpus ends where its checksum would begin.
    char sum[32];
    std::snprintf(sum, sizeof sum, "%016llx\n",
                  static_cast<unsigned long long>(XXH3_64bits(line.data(), line.size())));
    summed += line + sum;
    at = end + 1;
  }
  check(summed);
  return 0;
}

}  // namespace longhaul::fuzz::marks_target
