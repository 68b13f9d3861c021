// SPDX-License-Identifier: Apache-2.0
// The differences between the current configuration and a new one, and whether a running daemon can apply
// them.
#pragma once
#include <string>
#include <vector>

#include "proxy/config/config.h"

namespace longhaul::config {

struct Changes {
  std::vector<std::string> live;   // changes that a reload applies, one phrase each: "[[peer]] branch: rate"
  std::vector<std::string> fixed;  // changes that need a restart, as named in the file: "[link] listen"
};

// `after` has been read and is valid. The contents of the identity's files are not compared.
Changes changes(const Config& before, const Config& after);

}  // namespace longhaul::config
