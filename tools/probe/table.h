// SPDX-License-Identifier: Apache-2.0
// Rows in columns as wide as their widest cell, and numbers as people read them.
#pragma once
#include <ostream>
#include <string>
#include <vector>

namespace longhaul::probe {

void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out);
std::string fixed(double value, int digits);
std::string rate_text(double bits_per_second);  // "51.84 Mbit/s"

}  // namespace longhaul::probe
