// SPDX-License-Identifier: Apache-2.0
// How much of a processor this thread has wanted so far: what it got, and what it waited for while others
// ran. Leaves to whoever asks what follows from it.
#pragma once
#include "proxy/link/types.h"

namespace longhaul::link {

// A few microseconds. Where the kernel does not tell how long a thread waited, what it got.
Duration processor_wanted();

}  // namespace longhaul::link
