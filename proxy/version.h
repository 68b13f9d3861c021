// SPDX-License-Identifier: Apache-2.0
// The version shown by `longhaul --version`, the log and the control API, such as
// 0.1.0+git20261126.012607.6fb917af.
#pragma once
#include <string_view>

namespace longhaul {

std::string_view version();

}  // namespace longhaul
