// SPDX-License-Identifier: Apache-2.0
// Reads a configuration file into plain structs, or reports the first mistake in one sentence with its line.
// Interfaces, ports and sysctls are checked by the parts that use them.
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

// What to do about the files that the configuration names, such as keys. Commands that do not need these
// files ignore them, because they may run without access to the daemon's keys (a unit at boot, or a process
// without systemd's credentials).
enum class Files : std::uint8_t { check, ignore };

// Throws ConfigError. With Files::check, files that the configuration names must exist and be readable.
Config read(const std::filesystem::path& file, Files files = Files::check);

// The same from memory; `file` is used in messages and as the base of relative paths. Does not access any
// file.
Config read_text(std::string_view text, const std::filesystem::path& file);

// Warnings about settings that are valid but probably mistakes, one sentence each, such as a rule that is
// never used.
std::vector<std::string> warnings(const Config& config);

}  // namespace longhaul::config
