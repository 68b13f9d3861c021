// SPDX-License-Identifier: Apache-2.0
// For tests and tools, which need not be linked again for each commit: the number alone. A program that has
// build_version.cc among its own objects uses that one.
#include "proxy/version.h"

namespace longhaul {

std::string_view version() { return LONGHAUL_VERSION; }

}  // namespace longhaul
