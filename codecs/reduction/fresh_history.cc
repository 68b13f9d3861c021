// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/fresh_history.h"

#include <algorithm>

#include "codecs/reduction/segments.h"

namespace longhaul::reduction {
namespace {

// Newly answered bytes that justify a search of the history.
constexpr std::uint64_t kLookedThroughFor = 1u << 20;

}  // namespace

std::vector<Interval> FreshHistory::take(const SharedHistory& shared, std::uint64_t ring_bytes, Rest rest) {
  if (fresh_.empty()) return {};
  const std::uint64_t answered = shared.answered_bytes();
  if (answered - (rest == Rest::sealed ? rest_searched_at_ : searched_at_) <
      (rest == Rest::sealed ? 1 : kLookedThroughFor))
    return {};
  searched_at_ = answered;
  if (rest == Rest::sealed) rest_searched_at_ = answered;
  std::uint64_t reach = shared.head() > ring_bytes / 2 ? shared.head() - ring_bytes / 2 : 0;
  std::vector<Interval> ready, old;
  for (Interval fresh : fresh_.intervals()) {
    bool closed = rest == Rest::sealed || fresh.begin < reach;
    const auto& all = shared.held_ranges().intervals();
    auto held = std::lower_bound(all.begin(), all.end(), fresh.begin,
                                 [](const Interval& i, std::uint64_t offset) { return i.end <= offset; });
    for (; held != all.end() && held->begin < fresh.end; ++held) {
      Interval both{std::max(held->begin, fresh.begin), std::min(held->end, fresh.end)};
      while (both.begin < both.end) {
        std::uint64_t lap = both.begin / ring_bytes * ring_bytes + ring_bytes;
        Interval piece{both.begin, std::min({both.end, both.begin + kSealBytes, lap})};
        if (piece.size() == kSealBytes || piece.end == lap || (closed && piece.size() >= kMinSealedBytes))
          ready.push_back(piece);
        both.begin = piece.end;
      }
    }
    if (fresh.begin < reach) old.push_back({fresh.begin, std::min(fresh.end, reach)});
  }
  for (Interval piece : ready) fresh_.remove(piece);
  for (Interval piece : old) fresh_.remove(piece);
  std::erase_if(ready, [](Interval piece) { return piece.size() < kMinSealedBytes; });
  return ready;
}

}  // namespace longhaul::reduction
