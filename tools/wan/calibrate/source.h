// SPDX-License-Identifier: Apache-2.0
// The published figures that a calibration is printed beside; they are read from source.csv at build time.
#pragma once
#include <optional>
#include <string_view>

namespace longhaul::wan {

std::optional<double> source_figure(std::string_view kind, double set);

}  // namespace longhaul::wan
