// SPDX-License-Identifier: Apache-2.0
// The index entries by which content is found on disk: a few of the positions that the memory dictionary
// samples, with their fingerprints. The store has the index.
#pragma once
#include "codecs/reduction/segments.h"

namespace longhaul::reduction {

// Fills `hooks` with about one position in 4 KiB, in order. Depends on the content alone: if a piece of it
// occurs again, in a segment or in a block, the same positions are chosen, except near its ends.
// dedup::kOverread bytes after `content` may be read; their values have no meaning.
void find_hooks(Bytes content, std::vector<Hook>& hooks);

// The same for content that arrives in pieces: `content` is all of it so far, `from` the result of the
// previous call, 0 at first. Appends to `hooks`. After the call with `last` the result equals that of one
// call.
std::size_t find_hooks(Bytes content, std::size_t from, bool last, std::vector<Hook>& hooks);

}  // namespace longhaul::reduction
