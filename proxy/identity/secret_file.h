// SPDX-License-Identifier: Apache-2.0
// Reads a file with a secret, which must be readable only by its owner. The caller interprets its content.
#pragma once
#include <filesystem>
#include <string_view>

#include "crypto/secret.h"

namespace longhaul::identity {

struct SecretKind {
  std::string_view name;    // "preshared key", for messages
  std::string_view remedy;  // how to create one: the end of the error message
  std::size_t most_bytes;   // further bytes are not read
};

// Throws config::ConfigError, which names the file.
SecretBytes read_secret(const std::filesystem::path& file, const SecretKind& kind);

}  // namespace longhaul::identity
