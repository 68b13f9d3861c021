// SPDX-License-Identifier: Apache-2.0
// Only the version number, for tests and tools, which then need not be linked again after each commit. A
// program with build_version.cc among its own objects uses that file instead.
#include "proxy/version.h"

namespace longhaul {

std::string_view version() { return LONGHAUL_VERSION; }

}  // namespace longhaul
