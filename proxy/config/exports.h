// SPDX-License-Identifier: Apache-2.0
// Reads [export]: the data sent to monitoring systems. read.cc has the other tables.
#pragma once
#include <filesystem>

#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// `folder`: the base of relative file names.
Export read_export(const Section& top, const std::filesystem::path& folder);

}  // namespace longhaul::config
