// SPDX-License-Identifier: Apache-2.0
// What this machine lacks for what the configuration asks: each lack in one sentence, with the command that
// mends it. Asked by `check` and at start; mending is left to the operator.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul::intercept {

struct Finding {
  enum class Weight : std::uint8_t {
    blocks,  // transparent mode cannot work
    warns,   // it works, or works for some flows only
  } weight = Weight::blocks;
  std::string sentence;
  std::string remedy;  // a command, or what to do
};

// Empty where transparent mode is off and nothing asks for clients' addresses.
std::vector<Finding> host_findings(const config::Config& config);

// The parts that read /proc and /sys, with another root for tests.
std::vector<Finding> interface_findings(const config::Intercept& intercept,
                                        const std::filesystem::path& root);
std::vector<Finding> sysctl_findings(const config::Intercept& intercept, const std::filesystem::path& root);

}  // namespace longhaul::intercept
