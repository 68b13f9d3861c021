// SPDX-License-Identifier: Apache-2.0
// From a configuration file to plain structs: parse, then validate, or one clear sentence that says where it
// is wrong. Leaves what only the running host can tell (interfaces, ports in use, sysctls) to the parts that
// use it.
#pragma once
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul::config {

// Bad configuration at start; what() is "FILE:LINE: SENTENCE". Caught once, in main.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws ConfigError. Files that the configuration names must be there and readable.
Config read(const std::filesystem::path& file);

// The same from memory; `file` stands in messages and is what relative paths are relative to. Touches no
// file.
Config read_text(std::string_view text, const std::filesystem::path& file);

// What is allowed and probably not meant, one sentence each, such as a rule that an earlier one hides.
std::vector<std::string> warnings(const Config& config);

}  // namespace longhaul::config
