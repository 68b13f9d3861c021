// SPDX-License-Identifier: Apache-2.0
// Reads [export]: what is sent to monitoring systems. read.cc has the other tables.
#pragma once
#include <filesystem>

#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// `folder` has the files that are named without a directory.
Export read_export(const Section& top, const std::filesystem::path& folder);

}  // namespace longhaul::config
