// SPDX-License-Identifier: Apache-2.0
// In a file of its own, so that a new version recompiles only one file.
#include "proxy/version.h"

namespace longhaul {

std::string_view version() { return LONGHAUL_VERSION; }

}  // namespace longhaul
