// SPDX-License-Identifier: Apache-2.0
// The tables that application modules bring with them: [NAME], where a module's flows are found, and
// [[NAME_server]], what the far side may use of single servers. read.cc reads everything else.
#pragma once
#include <filesystem>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// Their names.
std::vector<std::string_view> module_tables();

std::vector<ModuleSettings> read_modules(const Section& top);

// `allow`: where this site connects to, which a server's addresses must be within. `folder`: of the configuration,
// from which names of files count.
std::vector<ServerTable> read_servers(const Section& top, const std::vector<Network>& allow,
                                      const std::filesystem::path& folder);

}  // namespace longhaul::config
