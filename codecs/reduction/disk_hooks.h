// SPDX-License-Identifier: Apache-2.0
// The index entries by which content is found on disk: a few of the positions that the memory dictionary
// samples, with their fingerprints. The store keeps them.
#pragma once
#include "codecs/reduction/segments.h"

namespace longhaul::reduction {

// Fills `hooks` with about one place in 4 KiB, in order. Depends on the content alone: where a piece of it
// stands again, in a segment or in a block, the same places are found, but for those near its ends.
// dedup::kOverread bytes behind `content` may be read, and mean nothing.
void find_hooks(Bytes content, std::vector<Hook>& hooks);

// The same for content that comes bit by bit: `content` is all of it so far, `from` what the call before
// answered, 0 first. Appends to `hooks`. What the last call, with `last`, leaves is what one call would find.
std::size_t find_hooks(Bytes content, std::size_t from, bool last, std::vector<Hook>& hooks);

}  // namespace longhaul::reduction
