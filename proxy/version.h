// SPDX-License-Identifier: Apache-2.0
// The version that `longhaul --version` and the control API tell; the number itself stands in CMakeLists.txt.
#pragma once
#include <string_view>

namespace longhaul {

std::string_view version();

}  // namespace longhaul
