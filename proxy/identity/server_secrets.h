// SPDX-License-Identifier: Apache-2.0
// Reads the files that the tables [[NAME_server]] name, and passes them to each module, which parses them.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "proxy/config/config.h"
#include "proxy/modules/secrets.h"

namespace longhaul::identity {

// By the module's name; contains only modules with such a table.
using ServerSecrets = std::map<std::string, std::shared_ptr<const modules::Secrets>, std::less<>>;

// Both throw config::ConfigError, which names the file.
modules::ServerFile read_server_file(const std::string& key, const std::filesystem::path& file);
ServerSecrets load_server_secrets(const config::Config& config);

}  // namespace longhaul::identity
