// SPDX-License-Identifier: Apache-2.0
// The rules for fail = "closed" that were last in force, stored in state_dir. They are installed at boot if
// the configuration cannot be read. closed_rules.h creates their text.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "proxy/config/text_error.h"
#include "proxy/intercept/closed_rules.h"

namespace longhaul::intercept {

inline constexpr const char* kKeptRulesName = "closed.rules";

// Stores the rules durably. Removes the file if they close nothing.
config::TextResult<void> keep_rules(const std::filesystem::path& state_dir, const ClosedRules& rules);

struct KeptRules {
  std::uint16_t port = 0;  // part of the table's name
  std::string commands;    // commands that install the table
};

config::TextResult<KeptRules> read_kept_rules(const std::filesystem::path& file);

}  // namespace longhaul::intercept
