// SPDX-License-Identifier: Apache-2.0
// The CPU time that this thread needed: the time it ran, and the time it waited for a CPU.
#pragma once
#include "proxy/link/types.h"

namespace longhaul::link {

// Takes a few microseconds. Returns only the running time if the kernel does not report waiting time.
Duration processor_wanted();

}  // namespace longhaul::link
