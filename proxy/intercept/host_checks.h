// SPDX-License-Identifier: Apache-2.0
// Checks whether this machine meets the requirements of the configuration: one sentence for each problem,
// with the command that fixes it. Used by `check` and at start-up.
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
