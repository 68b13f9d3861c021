// SPDX-License-Identifier: Apache-2.0
// The CPU time that this thread has demanded: time running, and time waiting for a CPU.
#pragma once
#include "proxy/link/types.h"

namespace longhaul::link {

// Takes a few microseconds. If the kernel does not report waiting time, only running time.
Duration processor_wanted();

}  // namespace longhaul::link
