// SPDX-License-Identifier: Apache-2.0
// A secret that two sites share in addition to their keys, from a file. link/PROTOCOL.md, section 2,
// describes its use.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "crypto/secret.h"
#include "proxy/config/config.h"

namespace longhaul::identity {

using PresharedKey = Secret<32>;
// By the peer's name; contains only peers with a preshared key.
using PresharedKeys = std::map<std::string, std::shared_ptr<const PresharedKey>>;

// 64 hexadecimal digits, as `openssl rand -hex 32` prints them, in a file that only its owner may read.
// Throws config::ConfigError, which names the file.
PresharedKey load_preshared_key(const std::filesystem::path& file);
PresharedKeys load_preshared_keys(const config::Config& config);

}  // namespace longhaul::identity
