// SPDX-License-Identifier: Apache-2.0
// Reads a file with a secret, which only its owner may be able to read. What it contains is its caller's to
// judge.
#pragma once
#include <filesystem>
#include <string_view>

#include "crypto/secret.h"

namespace longhaul::identity {

struct SecretKind {
  std::string_view name;    // "preshared key", for messages
  std::string_view remedy;  // how to make one: the end of the sentence that says it cannot be read
  std::size_t most_bytes;   // what follows is not read
};

// Throws config::ConfigError, which names the file.
SecretBytes read_secret(const std::filesystem::path& file, const SecretKind& kind);

}  // namespace longhaul::identity
