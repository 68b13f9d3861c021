// SPDX-License-Identifier: Apache-2.0
// The CPU time that this thread has demanded: time running, and time waiting for a CPU.
#pragma once
#include "proxy/link/types.h"

namespace longhaul::link {

// A few microseconds. Where the kernel does not tell how long a thread waited, what it got.
Duration processor_wanted();

}  // namespace longhaul::link
