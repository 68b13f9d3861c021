// SPDX-License-Identifier: Apache-2.0
// Limits of the process and settings of its host for a daemon with many flows: descriptors, the allocator,
// TCP.
#pragma once
#include <string>

namespace longhaul::process {

// Called once, at the start. If the host refuses a setting, that is logged with a remedy, and the daemon runs
// without it.
void tune(const std::string& congestion_control);

}  // namespace longhaul::process
