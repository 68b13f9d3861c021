// SPDX-License-Identifier: Apache-2.0
// The loops of the index for AVX-512, eight fingerprints at a time: they wait for memory only, and request
// all eight lines at once. The results equal those of the plain loops in fingerprint_index.cc.
#pragma once
#include <span>

#include "codecs/dedup/fingerprint_table.h"

#if defined(__x86_64__)
namespace longhaul::dedup::avx512 {

// Those whose tags have all bits of `needed`.
std::size_t fingerprints(const FingerprintTable& table, const std::byte* data,
                         std::span<std::uint32_t> positions, Fingerprint* out, std::uint32_t needed);
void newest(const FingerprintTable& table, std::uint64_t ring_bytes, std::span<const Fingerprint> prints,
            std::uint64_t before, std::uint64_t* out);
// Returns how many entries went into empty places.
std::uint64_t put(const FingerprintTable& table, std::uint64_t ring_bytes,
                  std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions,
                  std::uint64_t base);

}  // namespace longhaul::dedup::avx512
#endif
