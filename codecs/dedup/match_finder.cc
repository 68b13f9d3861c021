// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/match_finder.h"

#include <algorithm>
#include <cassert>
#include <optional>

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
// Samples nearer than this to the edge of a copy are remembered at their new place, so that the next block
// finds the history with this very edit. Samples farther inside stay at their old place, which every stream
// may use already.
constexpr std::uint32_t kEdge = 512;

// After a long match, this much is sampled at first.
constexpr std::uint32_t kFirstPiece = 1024;
// After this much without a match, fewer samples are taken of blocks of at least this size.
constexpr std::uint64_t kFreshBytes = 128 * 1024;
constexpr std::size_t kLargeBlock = 4096;

// Scratch space of a call: one per thread, so that an idle finder holds nothing.
struct Scratch {
  std::vector<std::uint32_t> positions;
  std::vector<Fingerprint> prints;
  std::vector<std::uint64_t> candidates;
  void make_room(std::size_t samples) {
    if (samples <= positions.size()) return;
    samples = std::max(samples, 2 * positions.size());
    positions.resize(samples);
    prints.resize(samples);
    candidates.resize(samples);
  }
};
Scratch& scratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

// One block's search. Positions are relative to the block; those of samples may be negative, where a window
// begins in the bytes before it.
class MatchFinder::Search {
 public:
  // Takes one sample in 64, halved this many times.
  Search(MatchFinder& finder, const HistoryRing& ring, std::uint64_t offset, std::size_t size,
         unsigned halvings)
      : kernels_(*finder.kernels_),
        index_(finder.index_),
        ring_(ring),
        offset_(offset),
        size_(static_cast<std::uint32_t>(size)),
        block_(ring.read(offset, size).data()),
        halvings_(halvings),
        scratch_(scratch()) {
    // Windows may begin in the previous block, if that is adjacent in memory.
    const std::uint64_t lap = offset - offset % ring.size();
    first_ = -static_cast<std::int64_t>(
        std::min<std::uint64_t>(kKeyBytes - 1, offset - std::max(lap, ring.floor())));
    end_ = std::int64_t{size_} - std::int64_t{kKeyBytes - 1};
    const std::uint64_t third = ring.size() / 3;
    lasts_from_ = ring.head() > third ? ring.head() - third : 0;
    sampled_ = first_;
  }

  // Samples the part of [from, to) that was not sampled yet.
  void sample(std::int64_t from, std::int64_t to) {
    from = std::max(from, sampled_);
    to = std::min(to, end_);
    if (from >= to) return;
    sampled_ = to;
    const auto count = static_cast<std::size_t>(to - from);
    scratch_.make_room(samples_ + sample_room(count));
    std::uint32_t* const positions = scratch_.positions.data() + samples_;
    std::size_t samples = kernels_.sample(block_ + from, count, positions);
    samples = index_.fingerprints(block_ + from, {positions, samples}, scratch_.prints.data() + samples_,
                                  halvings_);
    for (std::size_t i = 0; i < samples; ++i) positions[i] += static_cast<std::uint32_t>(from - first_);
    samples_ += samples;
  }
  void sample_all() { sample(first_, end_); }

  // Looks up the samples that were not looked up yet.
  void look_up() {
    const std::size_t fresh = samples_ - looked_up_;
    index_.newest(std::span<const Fingerprint>(scratch_.prints).subspan(looked_up_, fresh), offset_,
                  scratch_.candidates.data() + looked_up_);
    for (std::uint64_t& candidate : std::span(scratch_.candidates).subspan(looked_up_, fresh)) {
      if (candidate == 0) continue;
      if (ring_.holds(candidate, kKeyBytes)) {
        fetch(ring_.read(candidate, kKeyBytes).data());
      } else {
        candidate = 0;
      }
    }
    looked_up_ = samples_;
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
      if (sampled_ < std::min(end_, std::int64_t{done_} + kResumeWithin + kSwitchWithin)) {
        sample(std::int64_t{done_} - kEdge, done_ + piece);
        look_up();
        piece *= 2;
      }
      const std::optional<Copy> resumed = resumption();
      const std::int64_t end = resumed ? std::int64_t{resumed->position} + kSwitchWithin : size_;
      std::optional<Copy> found;
      for (; next < samples_ && !found; ++next) {
        const std::int64_t position = position_of(next);
        if (position + std::int64_t{kKeyBytes} <= std::int64_t{done_}) continue;
        if (position >= end) break;
        const std::uint64_t candidate = scratch_.candidates[next];
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
        if (sampled_ >= end_) break;
        piece *= 4;
        sample(sampled_, sampled_ + piece);
        look_up();
        continue;
      }
      distance_ = offset_ + found->position - found->source;
      add(*found, copies);
      if (found->length >= kFirstPiece && lasts(found->source)) piece = kFirstPiece;
    }
  }

  // Samples deep inside a copy are found through the source of the copy.
  void remember(const std::vector<Copy>& copies) {
    std::size_t from = 0, kept = 0;
    for (const Copy& copy : copies) {
      const std::int64_t end = std::int64_t{copy.position} + copy.length;
      const std::int64_t known_from = copy.position == 0 ? first_ : copy.position + std::int64_t{kEdge};
      const std::int64_t known_to = end - std::int64_t{kKeyBytes} - (end == size_ ? 0 : kEdge);
      if (known_from > known_to || !lasts(copy.source)) continue;  // the usual case
      const std::size_t begin = first_sample_at(known_from, from);
      kept = keep(from, begin, kept);
      from = first_sample_at(known_to + 1, begin);
    }
    samples_ = keep(from, samples_, kept);
    remember_all();
  }

  void remember_all() {
    index_.insert(std::span(scratch_.prints).first(samples_), std::span(scratch_.positions).first(samples_),
                  offset_ + static_cast<std::uint64_t>(first_));
  }

  void remember_beside() {
    for (std::size_t i = 0; i < samples_; ++i)
      index_.insert_beside(scratch_.prints[i], offset_ + static_cast<std::uint64_t>(position_of(i)));
  }

  // References to old history would soon expire, so the block itself is remembered. Content that returns
  // within twice that distance must still be in reach then, which is three quarters of the ring.
  bool lasts(std::uint64_t source) const { return source >= lasts_from_; }
  std::uint32_t done() const { return done_; }

  // Where the next block of the stream might go on.
  std::uint64_t continuation() const {
    return distance_ && size_ - done_ <= kResumeWithin ? offset_ + size_ - distance_ : 0;
  }

 private:
  // Instead of a candidate: there is one, but it may not be used yet.
  static constexpr std::uint64_t kWaiting = 1;

  std::int64_t position_of(std::size_t sample) const {
    return first_ + std::int64_t{scratch_.positions[sample]};
  }
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
    const std::int64_t position = position_of(sample);
    const std::int64_t from = std::max(position, std::int64_t{done_});
    const auto inside = static_cast<std::uint64_t>(from - position);
    std::uint64_t candidate = scratch_.candidates[sample];
    if (candidate == kWaiting) return std::nullopt;
    while (!enter(candidate + inside, usable)) {
      // An older one may suffice.
      scratch_.candidates[sample] = kWaiting;
      waiting_ = true;
      candidate = index_.newest(scratch_.prints[sample], candidate);
      if (candidate == 0 || !ring_.holds(candidate, kKeyBytes)) return std::nullopt;
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

  // The first sample from number `from` on with at least that position.
  std::size_t first_sample_at(std::int64_t position, std::size_t from) const {
    const auto begin = scratch_.positions.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(samples_);
    const auto found = std::lower_bound(begin + static_cast<std::ptrdiff_t>(from), end, position - first_);
    return static_cast<std::size_t>(found - begin);
  }

  // Moves samples [from, to) behind the first `kept` ones and returns the new number of those. Samples that
  // wait for an older entry go into the index at once.
  std::size_t keep(std::size_t from, std::size_t to, std::size_t kept) {
    if (!waiting_) {
      const auto move = [&](auto& samples) {
        const auto begin = samples.begin();
        std::copy(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to),
                  begin + static_cast<std::ptrdiff_t>(kept));
      };
      if (from != kept) move(scratch_.prints), move(scratch_.positions);
      return kept + to - from;
    }
    for (std::size_t i = from; i < to; ++i) {
      if (scratch_.candidates[i] == kWaiting) {
        index_.insert_beside(scratch_.prints[i], offset_ + static_cast<std::uint64_t>(position_of(i)));
        continue;
      }
      scratch_.prints[kept] = scratch_.prints[i];
      scratch_.positions[kept++] = scratch_.positions[i];
    }
    return kept;
  }

  // Prefetches the history that a copy from here would be compared with: mostly its first 500 bytes are read,
  // and memory delivers ten lines in little more than the time of one.
  __attribute__((always_inline)) static void fetch(const std::byte* candidate) {
    for (int line = -2; line <= 8; ++line) __builtin_prefetch(candidate + 64 * line);
  }

  const Kernels& kernels_;
  FingerprintIndex& index_;
  const HistoryRing& ring_;
  const std::uint64_t offset_;
  const std::uint32_t size_;
  const std::byte* const block_;
  const unsigned halvings_;
  Scratch& scratch_;
  std::size_t samples_ = 0, looked_up_ = 0;  // how many of the scratch space's are this block's
  std::uint64_t lasts_from_ = 0;
  std::int64_t first_ = 0;    // the first position that may be sampled; positions count from here
  std::int64_t end_ = 0;      // one past the last one
  std::int64_t sampled_ = 0;  // up to here they were looked up, or skipped

  bool waiting_ = false;        // some candidate is kWaiting
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
    search.remember(copies);
  } else if (!search.lasts(copies[0].source)) {
    search.sample_all();
    search.remember_all();
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
    Search search(*this, ring, offset + done, piece, 0);
    search.sample_all();
    search.remember_beside();
    done += piece;
  }
}

}  // namespace longhaul::dedup
