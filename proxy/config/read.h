// SPDX-License-Identifier: Apache-2.0
// Reads a configuration file into plain structs, or reports the first mistake in one sentence with its line. The
// parts that use interfaces, ports and sysctls check those.
#pragma once
#include <cstdint>
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

// Of the files that the configuration names, such as keys. Ignored by commands that need none of them: they run where
// the daemon's keys are not (a unit at boot, or another process than the one that has systemd's credentials).
enum class Files : std::uint8_t { check, ignore };

// Throws ConfigError. With Files::check, files that the configuration names must exist and be readable.
Config read(const std::filesystem::path& file, Files files = Files::check);

// The same from memory; `file` is used in messages and as the base of relative paths. Accesses no file.
Config read_text(std::string_view text, const std::filesystem::path& file);

// Settings that are valid but probably mistakes, one sentence each, such as a rule that is never used.
std::vector<std::string> warnings(const Config& config);

}  // namespace longhaul::config
