// SPDX-License-Identifier: Apache-2.0
// The rules behind fail = "closed" as they were last in force, kept in state_dir: what is installed at boot where the
// configuration cannot be read. closed_rules.h makes their text.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "proxy/config/text_error.h"
#include "proxy/intercept/closed_rules.h"

namespace longhaul::intercept {

inline constexpr const char* kKeptRulesName = "closed.rules";

// Durable. Removes the file where the rules close nothing.
config::TextResult<void> keep_rules(const std::filesystem::path& state_dir, const ClosedRules& rules);

struct KeptRules {
  std::uint16_t port = 0;  // part of the table's name
  std::string commands;    // that put the table in place
};

config::TextResult<KeptRules> read_kept_rules(const std::filesystem::path& file);

}  // namespace longhaul::intercept
