// SPDX-License-Identifier: Apache-2.0
#include <fstream>

void write(std::ofstream& out) { out << "text"; }
