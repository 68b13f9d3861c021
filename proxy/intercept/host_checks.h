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
    warns,   // it works only for some flows
  } weight = Weight::blocks;
  std::string sentence;
  std::string remedy;  // a command, or an instruction
};

// Empty if transparent mode is off and no clients' addresses are needed.
std::vector<Finding> host_findings(const config::Config& config);

// The parts that read /proc and /sys, with another root for tests.
std::vector<Finding> interface_findings(const config::Intercept& intercept,
                                        const std::filesystem::path& root);
std::vector<Finding> sysctl_findings(const config::Intercept& intercept, const std::filesystem::path& root);

}  // namespace longhaul::intercept
