// SPDX-License-Identifier: Apache-2.0
#include "codecs/block_codec.h"

// The library's own choice by the CPU: AVX-512 or AVX2 where XXH3_64bits would be SSE2, half as fast.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace longhaul {

std::uint64_t block_checksum(Bytes plain) { return XXH3_64bits(plain.data(), plain.size()); }

}  // namespace longhaul
