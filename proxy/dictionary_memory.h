// SPDX-License-Identifier: Apache-2.0
// How much memory the dictionaries may take: a bound of its own, beside [limits] memory, which is about the
// buffers of flows; a history is kept when no flow is there. Leaves keeping it to the codecs and the store.
#pragma once
#include "proxy/config/config.h"

namespace longhaul {

// Of all peers, in both directions, and of the disk dictionary.
std::uint64_t most_dictionary_memory(const config::Config& config);

}  // namespace longhaul
