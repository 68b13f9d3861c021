// SPDX-License-Identifier: Apache-2.0
// The manual page of a program, from the same definition as its --help. What only a person knows, such as the
// files it uses, is given as sections.
#pragma once
#include <string>
#include <vector>

#include "manuals/words.h"

namespace longhaul::manuals {

struct Section {
  std::string heading;
  std::string text;  // paragraphs, separated by an empty line
};

// For man(7), in section 1.
std::string manual(const std::string& program, const Command& command, const std::vector<Section>& sections);

}  // namespace longhaul::manuals
