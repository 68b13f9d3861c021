// SPDX-License-Identifier: Apache-2.0
// Creates the manual page of a program from the same definition as its --help. Other information, such as the
// files that the program uses, is passed as sections.
#pragma once
#include <string>
#include <vector>

#include "manuals/words.h"

namespace longhaul::manuals {

struct Section {
  std::string heading;
  std::string text;  // paragraphs, separated by an empty line
};

// Returns the page in the format of man(7), for section 1.
std::string manual(const std::string& program, const Command& command, const std::vector<Section>& sections);

}  // namespace longhaul::manuals
