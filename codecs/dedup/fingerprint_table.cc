// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/fingerprint_table.h"

namespace longhaul::dedup {

Result<FingerprintTable> FingerprintTable::make(std::size_t max_bytes) {
  auto memory = LazyMemory::make(max_bytes);
  if (!memory) return memory.error();
  return FingerprintTable(std::move(*memory));
}

void FingerprintTable::grow() {
  using Four = Bucket::Four;
  const std::uint64_t whole = std::uint64_t{shape_.planes} * shape_.base;
  Bucket& from = data()[shape_.buckets - whole];
  Bucket& to = data()[shape_.buckets];
  const Four moved = (from.tags & Bucket::all_ways(shape_.planes << Bucket::kLowBits)) != Bucket::all_ways(0);
  to = {from.tags & moved, from.places & moved};
  from = {from.tags & ~moved, from.places & ~moved};
  if (++shape_.buckets == 2 * whole) shape_.planes *= 2;
}

void FingerprintTable::clear() {
  memory_.release(0, memory_.size());
  shape_ = smallest(memory_.size());
  entries_ = 0;
}

}  // namespace longhaul::dedup
