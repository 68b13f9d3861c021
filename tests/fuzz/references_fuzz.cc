// SPDX-License-Identifier: Apache-2.0
// A ring decodes blocks, some that our encoder made and some that are nothing but bytes, at offsets that the
// input chooses. Whatever comes, only memory of the block is written; what our encoder made of the same
// history comes out as it was.
#include <cstring>
#include <string>
#include <vector>

#include "codecs/dedup/match_finder.h"
#include "fuzz/choices.h"
#include "fuzz/target.h"

namespace longhaul::fuzz::references_target {
using namespace longhaul::dedup;
using longhaul::fuzz::Choices;

FUZZ_TARGET(references) {
  Choices choices(std::as_bytes(std::span(data, size)));
  constexpr std::size_t kSize = 2 * kRingStep;
  auto here = HistoryRing::make(kSize).value(), there = HistoryRing::make(kSize).value();
  auto finder = MatchFinder::make({kSize}).value();
  std::string text(300, 'a');
  std::uint64_t continuation = 0;
  std::vector<Copy> copies;
  while (!choices.empty()) {
    if (choices.below(4) != 0) {
      // Ours: pieces of what was there before, between new bytes, often enough for a lap.
      std::string plain;
      for (unsigned pieces = 1 + choices.below(6); pieces > 0; --pieces) {
        plain += as_text(choices.some(40));
        const std::size_t at = (choices.byte() * 256u + choices.byte()) % text.size();
        plain += text.substr(at, choices.byte() * (choices.below(4) == 0 ? 80u : 1u));
      }
      if (plain.empty()) continue;
      plain.resize(std::min(plain.size(), kRingStep));
      text += plain;
      if (text.size() > 50'000) text.erase(0, text.size() - 40'000);
      const std::uint64_t offset = here.place(plain.size());
      std::memcpy(here.reserve(offset, plain.size()).data(), plain.data(), plain.size());
      finder.find(
          here, offset, plain.size(),
          [&](std::uint64_t) {
            return Interval{here.floor(), here.head()};
          },
          copies, choices.below(2) ? &continuation : nullptr);
      Buffer encoded;
      encode_references(offset, as_bytes(plain), copies, encoded);
      require(there.fits(offset, plain.size()));
      const MutableBytes restored = there.reserve(offset, plain.size());
      require(bool(decode_references(there, encoded, offset, restored)));
      require(std::memcmp(restored.data(), plain.data(), plain.size()) == 0);
      continue;
    }
    // Anything: into memory of exactly that size; access beyond it is an error.
    const std::uint64_t offset = choices.below(2) ? there.head() + choices.byte() : choices.number();
    const std::size_t plain_bytes = choices.below(8) == 0 ? kRingStep : choices.byte();
    std::vector<std::byte> plain(plain_bytes);
    const Bytes encoded = choices.some(255);
    if (parse_references(encoded, offset, plain_bytes, copies)) {
      std::size_t done = 0;
      for (const Copy& copy : copies) {
        require(copy.position >= done && copy.length >= kMinCopy);
        require(copy.source + copy.length <= offset);
        done = copy.position + copy.length;
        require(done <= plain_bytes);
      }
    }
    (void)decode_references(there, encoded, offset, plain);
    if (choices.below(4) == 0) {
      const std::uint64_t floor = here.head() - choices.byte() * 256u;
      here.forget_before(floor);
      there.forget_before(floor);
    }
  }
  return 0;
}

}  // namespace longhaul::fuzz::references_target
