// SPDX-License-Identifier: Apache-2.0
#include "codecs/block_codec.h"

#include <xxhash.h>

namespace longhaul {

std::uint64_t block_checksum(Bytes plain) { return XXH3_64bits(plain.data(), plain.size()); }

}  // namespace longhaul
