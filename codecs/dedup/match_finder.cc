// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/match_finder.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "codecs/dedup/block_samples.h"

namespace longhaul::dedup {
namespace {

constexpr std::uint32_t kMinMatch = 32;  // shorter ones cost more in tokens than they save (measured)
// After an edit: how far to look for a run at the same distance, and the minimum length of that run. The
// token of such a copy is two or three bytes.
constexpr std::uint32_t kResumeWithin = 512;
constexpr unsigned kResumeRun = 16;
// A block that is one copy from end to end is worth a reference even if it is short.
constexpr std::uint32_t kMinWhole = 12;
// A copy from elsewhere must begin this much earlier than the same distance would continue: it costs a new
// distance, and another one to come back if it is the shorter run.
constexpr std::uint32_t kSwitchGain = 8;
constexpr std::uint32_t kDetourGain = 32;
// How far after the resumption to look for history that contains the edit, too.
constexpr std::uint32_t kSwitchWithin = 256;

// After a long match, this much is sampled at first.
constexpr std::uint32_t kFirstPiece = 1024;
// After this much without a match, fewer samples are taken of blocks of at least this size.
constexpr std::uint64_t kFreshBytes = 128 * 1024;
constexpr std::size_t kLargeBlock = 4096;

}  // namespace

// One block's search. Positions are relative to the block.
class MatchFinder::Search {
 public:
  // `halvings`: of the number of samples.
  Search(MatchFinder& finder, const HistoryRing& ring, std::uint64_t offset, std::size_t size,
         unsigned halvings)
      : kernels_(*finder.kernels_),
        ring_(ring),
        offset_(offset),
        size_(static_cast<std::uint32_t>(size)),
        block_(ring.read(offset, size).data()),
        samples_(*finder.kernels_, finder.index_, ring, offset, size, halvings) {
    const std::uint64_t third = ring.size() / 3;
    lasts_from_ = ring.head() > third ? ring.head() - third : 0;
  }

  // The block may continue where the previous one left off.
  void follow(std::uint64_t source, Usable usable, std::vector<Copy>& copies) {
    if (!enter(source, usable)) return;
    distance_ = offset_ - source;
    const std::uint32_t length = ahead(0, source);
    if (length >= kResumeRun || (length == size_ && length >= kMinWhole)) add({0, length, source}, copies);
  }

  void walk(Usable usable, std::vector<Copy>& copies) {
    std::size_t next = 0;
    // If a match is likely to resume soon, few positions are sampled at a time, because the inside of a match
    // needs no samples. Otherwise ever more, because lookups are faster in large batches.
    std::int64_t piece = distance_ && lasts(offset_ - distance_) ? kFirstPiece : size_;
    while (done_ < size_) {
      if (samples_.sampled() <
          std::min(samples_.end(), std::int64_t{done_} + kResumeWithin + kSwitchWithin)) {
        samples_.sample(std::int64_t{done_} - BlockSamples::kEdge, done_ + piece);
        samples_.look_up();
        piece *= 2;
      }
      const std::optional<Copy> resumed = resumption();
      const std::int64_t end = resumed ? std::int64_t{resumed->position} + kSwitchWithin : size_;
      std::optional<Copy> found;
      for (; next < samples_.size() && !found; ++next) {
        const std::int64_t position = samples_.position(next);
        if (position + std::int64_t{kKeyBytes} <= std::int64_t{done_}) continue;
        if (position >= end) break;
        const std::uint64_t candidate = samples_.candidate(next);
        if (candidate == 0) continue;
        // The index knows nothing newer than the run that continues here anyway.
        if (resumed && offset_ + static_cast<std::uint64_t>(position) - candidate == distance_) break;
        const Interval range = range_;
        found = try_sample(next, usable);
        if (found && (!resumed || better(*found, *resumed))) break;
        range_ = range;
        if (found) {
          found.reset();
          break;
        }
      }
      if (!found) found = resumed;
      if (!found) {
        if (samples_.sampled() >= samples_.end()) break;
        piece *= 4;
        samples_.sample(samples_.sampled(), samples_.sampled() + piece);
        samples_.look_up();
        continue;
      }
      distance_ = offset_ + found->position - found->source;
      add(*found, copies);
      if (found->length >= kFirstPiece && lasts(found->source)) piece = kFirstPiece;
    }
  }

  // References to old history would soon expire, so the block itself is remembered. Content that returns
  // within twice that distance must still be in reach then, which is three quarters of the ring.
  bool lasts(std::uint64_t source) const { return source >= lasts_from_; }
  std::uint64_t lasts_from() const { return lasts_from_; }
  BlockSamples& samples() { return samples_; }
  std::uint32_t done() const { return done_; }

  // Where the next block of the stream might go on.
  std::uint64_t continuation() const {
    return distance_ && size_ - done_ <= kResumeWithin ? offset_ + size_ - distance_ : 0;
  }

 private:
  const std::byte* history(std::uint64_t source) const { return ring_.read(source, 0).data(); }

  // Sets range_ to the usable history around `source`; false if that is empty.
  bool enter(std::uint64_t source, Usable usable) {
    if (source >= range_.begin && source < range_.end) return true;
    if (source >= offset_ || !ring_.holds(source, 1)) return false;
    const Interval range = usable(source);
    if (source < range.begin || source >= range.end) return false;
    const std::uint64_t lap = source - source % ring_.size();
    range_ = {std::max({range.begin, lap, ring_.floor()}),
              std::min({range.end, lap + ring_.size(), offset_})};
    return true;
  }

  std::uint32_t ahead(std::uint32_t position, std::uint64_t source) const {
    const auto most = std::min<std::uint64_t>(size_ - position, range_.end - source);
    return static_cast<std::uint32_t>(
        kernels_.equal_ahead(block_ + position, history(source), static_cast<std::size_t>(most)));
  }

  // The point where the last copy's distance is right again, if that is soon.
  std::optional<Copy> resumption() const {
    if (distance_ == 0) return std::nullopt;
    const std::uint64_t source = offset_ + done_ - distance_;
    if (source < range_.begin || source >= range_.end) return std::nullopt;
    const auto most = static_cast<std::size_t>(
        std::min<std::uint64_t>({size_ - done_, range_.end - source, kResumeWithin + kResumeRun}));
    const std::size_t at = kernels_.equal_again(block_ + done_, history(source), most, kResumeRun);
    if (at == most) return std::nullopt;
    const std::uint32_t position = done_ + static_cast<std::uint32_t>(at);
    return Copy{position, ahead(position, source + at), source + at};
  }

  // Whether to continue elsewhere rather than at the same distance.
  static bool better(const Copy& other, const Copy& resumed) {
    const bool lasts_longer = other.position + other.length >= resumed.position + resumed.length;
    return other.position + (lasts_longer ? kSwitchGain : kDetourGain) <= resumed.position;
  }

  std::optional<Copy> try_sample(std::size_t sample, Usable usable) {
    const std::int64_t position = samples_.position(sample);
    const std::int64_t from = std::max(position, std::int64_t{done_});
    const auto inside = static_cast<std::uint64_t>(from - position);
    std::uint64_t candidate = samples_.candidate(sample);
    if (candidate == BlockSamples::kWaiting) return std::nullopt;
    while (!enter(candidate + inside, usable)) {
      candidate = samples_.older(sample, candidate);
      if (candidate == 0) return std::nullopt;
    }
    const std::uint64_t source = candidate + inside;
    const auto begin = static_cast<std::uint32_t>(from);
    const std::uint32_t forward = ahead(begin, source);
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(begin - done_, source - range_.begin));
    const auto back =
        static_cast<std::uint32_t>(kernels_.equal_behind(block_ + begin, history(source), most));
    const Copy copy{begin - back, forward + back, source - back};
    const bool whole = copy.length == size_ && copy.length >= kMinWhole;
    return copy.length >= kMinMatch || whole ? std::optional(copy) : std::nullopt;
  }

  void add(const Copy& copy, std::vector<Copy>& copies) {
    assert(copy.position >= done_ && copy.length >= kMinCopy);
    copies.push_back(copy);
    done_ = copy.position + copy.length;
  }

  const Kernels& kernels_;
  const HistoryRing& ring_;
  const std::uint64_t offset_;
  const std::uint32_t size_;
  const std::byte* const block_;
  BlockSamples samples_;
  std::uint64_t lasts_from_ = 0;

  std::uint32_t done_ = 0;      // everything before it is copied or left as literals
  std::uint64_t distance_ = 0;  // of the last copy
  Interval range_;              // usable and contiguous, around the last source
};

Result<MatchFinder> MatchFinder::make(const Options& options) {
  auto index =
      FingerprintIndex::make(options.ring_bytes, (options.kernels ? *options.kernels : kernels()).vectors);
  if (!index) return index.error();
  return MatchFinder(options, std::move(*index));
}

void MatchFinder::find(const HistoryRing& ring, std::uint64_t offset, std::size_t size, Usable usable,
                       std::vector<Copy>& copies, std::uint64_t* continuation) {
  assert(size <= kRingStep);
  copies.clear();
  const bool large = size >= kLargeBlock;
  Search search(*this, ring, offset, size, large ? halvings() : 0);
  if (continuation && *continuation) search.follow(*continuation, usable, copies);
  if (search.done() < size) {
    search.walk(usable, copies);
    search.samples().remember(copies, search.lasts_from());
  } else if (!search.lasts(copies[0].source)) {
    search.samples().sample_all();
    search.samples().remember_all();
  }
  if (large) fresh_bytes_ = copies.empty() ? fresh_bytes_ + size : 0;
  if (continuation) *continuation = search.continuation();
}

// Bulk data without repeats, such as compressed or encrypted files, is sampled thinly: this is faster, and
// such data repeats in large pieces if at all.
unsigned MatchFinder::halvings() const {
  return fresh_bytes_ < kFreshBytes ? (thinner_ ? 1 : 0) : fresh_bytes_ < 4 * kFreshBytes ? 1 : 2;
}

void MatchFinder::insert(const HistoryRing& ring, std::uint64_t offset, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::size_t piece = std::min(size - done, kRingStep);
    BlockSamples samples(*kernels_, index_, ring, offset + done, piece, 0);
    samples.sample_all();
    samples.remember_beside();
    done += piece;
  }
}

}  // namespace longhaul::dedup
