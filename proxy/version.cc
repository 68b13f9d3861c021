// SPDX-License-Identifier: Apache-2.0
// Alone in its file, so that a new version compiles one file anew.
#include "proxy/version.h"

namespace longhaul {

std::string_view version() { return LONGHAUL_VERSION; }

}  // namespace longhaul
