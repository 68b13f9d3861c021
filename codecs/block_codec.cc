// SPDX-License-Identifier: Apache-2.0
#include "codecs/block_codec.h"

#include <cstring>

// XXH3's dispatcher picks AVX-512 or AVX2 at run time; XXH3_64bits would use SSE2, which is half as fast.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace longhaul {

BlockChecksum::BlockChecksum() {
  static_assert(kSecretBytes >= XXH3_SECRET_SIZE_MIN);
  for (std::uint64_t at = 0; at < secret_.size(); at += sizeof at) {
    const std::uint64_t word = XXH64(&at, sizeof at, 0);
    std::memcpy(&secret_[at], &word, sizeof word);
  }
}

BlockChecksum::BlockChecksum(std::span<const std::byte, kSecretBytes> secret) {
  std::memcpy(secret_.data(), secret.data(), secret.size());
}

BlockChecksum::~BlockChecksum() { explicit_bzero(secret_.data(), secret_.size()); }

std::uint64_t BlockChecksum::of(Bytes plain) const {
  return XXH3_64bits_withSecret(plain.data(), plain.size(), secret_.data(), secret_.size());
}

}  // namespace longhaul
