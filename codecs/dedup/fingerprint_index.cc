// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/fingerprint_index.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace longhaul::dedup {

Result<FingerprintIndex> FingerprintIndex::make(std::uint64_t ring_bytes) {
  if (ring_bytes == 0 || ring_bytes % 65'536 != 0 || ring_bytes > kMaxRingBytes)
    return make_error_code(boost::system::errc::invalid_argument);
  auto memory = LazyMemory::make(ring_bytes / 16);
  if (!memory) return memory.error();
  return FingerprintIndex(std::move(*memory), ring_bytes);
}

Fingerprint FingerprintIndex::fingerprint(const std::byte* key) const {
  const std::uint64_t hash = XXH3_64bits(key, kKeyBytes);
  return {static_cast<std::uint32_t>((hash & 0xffffffff) * base_ >> 32),
          static_cast<std::uint32_t>(hash >> kOffsetBits)};
}

void FingerprintIndex::fingerprints(const std::byte* data, std::span<const std::uint32_t> positions,
                                    Fingerprint* out) const {
  for (const std::uint32_t position : positions) {
    *out = fingerprint(data + position);
    __builtin_prefetch(bucket(*out++));
  }
}

std::uint64_t FingerprintIndex::newest(Fingerprint print, std::uint64_t before) const {
  const Entry* entries = bucket(print);
  std::uint64_t best = ring_bytes_ + 1;
  for (unsigned way = 0; way < kWays; ++way) {
    // An age of 0 is the offset itself: as -1 it counts as the oldest.
    const std::uint64_t age = age_of(entries[way], before) - 1;
    best = tag_of(entries[way]) == print.tag ? std::min(best, age) : best;
  }
  return best < ring_bytes_ && best + 1 < before ? before - 1 - best : 0;
}

void FingerprintIndex::newest(std::span<const Fingerprint> prints, std::uint64_t before,
                              std::uint64_t* out) const {
  for (const Fingerprint print : prints) *out++ = newest(print, before);
}

void FingerprintIndex::insert(Fingerprint print, std::uint64_t offset, Same same) {
  // Each way's claim to be replaced: what it is, then how old.
  constexpr std::uint64_t kOrdinary = Entry{1} << kOffsetBits, kDead = 2 * kOrdinary, kEmpty = 3 * kOrdinary,
                          kSame = 4 * kOrdinary;
  Entry* entries = bucket(print);
  std::uint64_t most = 0;
  unsigned chosen = 0, equals = 0, newest_equal = 0;
  for (unsigned way = 0; way < kWays; ++way) {
    const Entry entry = entries[way];
    const std::uint64_t age = age_of(entry, offset);
    std::uint64_t claim = age;
    claim += tag_of(entry) & kPreferred ? 0 : kOrdinary;
    claim = age > ring_bytes_ ? kDead : claim;
    claim = entry == 0 ? kEmpty : claim;
    if (tag_of(entry) == print.tag && entry != 0) {
      if (equals++ == 0 || age < age_of(entries[newest_equal], offset)) newest_equal = way;
      claim = same == Same::replaced ? kSame + age : 0;
    }
    if (claim > most) {
      most = claim;
      chosen = way;
    }
  }
  if (same == Same::kept && equals > 1) {
    // The older of them is the one to wait for.
    chosen = newest_equal;
    most = kSame;
  }
  if (most < kOrdinary && !(print.tag & kPreferred)) return;
  entries[chosen] = Entry{print.tag} << kOffsetBits | (offset & kOffsetMask);
  if (most == kEmpty) {
    ++entries_;
    while (entries_ > entries_for_size() && planes_ < kPlanes) grow();
  }
}

void FingerprintIndex::grow() {
  const std::uint64_t whole = std::uint64_t{planes_} * base_;
  Entry* from = table() + (buckets_ - whole) * kWays;
  Entry* to = table() + buckets_ * kWays;
  for (unsigned way = 0; way < kWays; ++way) {
    if (!(tag_of(from[way]) & planes_)) continue;
    to[way] = from[way];
    from[way] = 0;
  }
  if (++buckets_ == 2 * whole) planes_ *= 2;
}

void FingerprintIndex::clear() {
  memory_.release(0, memory_.size());
  buckets_ = base_;
  planes_ = 1;
  entries_ = 0;
}

}  // namespace longhaul::dedup
