// SPDX-License-Identifier: Apache-2.0
// The tables of application modules: [NAME], which finds a module's flows, and [[NAME_server]], with the
// secrets of single servers that the far side may use. read.cc reads everything else.
#pragma once
#include <filesystem>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/section.h"

namespace longhaul::config {

// The names of these tables.
std::vector<std::string_view> module_tables();

std::vector<ModuleSettings> read_modules(const Section& top);

// `allow`: the destinations of this site, which must contain each server's addresses. `folder`: of the
// configuration, the base of relative file names.
std::vector<ServerTable> read_servers(const Section& top, const std::vector<Network>& allow,
                                      const std::filesystem::path& folder);

}  // namespace longhaul::config
