// SPDX-License-Identifier: Apache-2.0
// The version shown by `longhaul --version` and the control API; CMakeLists.txt defines it.
#pragma once
#include <string_view>

namespace longhaul {

std::string_view version();

}  // namespace longhaul
