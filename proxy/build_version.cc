// SPDX-License-Identifier: Apache-2.0
// The version with the commit. After a commit, only this file is compiled again.
#include "proxy/version.h"
#include "version_text.h"  // made by cmake/version.cmake

namespace longhaul {

std::string_view version() { return LONGHAUL_VERSION; }

}  // namespace longhaul
