// SPDX-License-Identifier: Apache-2.0
#include "manuals/help_lines.h"

#include <algorithm>

namespace longhaul::manuals {

std::string help_lines(std::string_view text, std::size_t column) {
  std::string all;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    const bool ends = line.size() < text.size();
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool is_entry = line.starts_with(' ');
    std::size_t indent = 0, least = is_entry ? column : 0;  // of this part; option names are not broken
    while (indent + line.size() > kHelpWidth) {
      const std::size_t room = kHelpWidth - indent;
      std::size_t end = line.rfind(' ', room);
      if (end == std::string_view::npos || end <= least) end = line.find(' ', room);  // the word is too long
      if (end == std::string_view::npos) break;
      all.append(indent, ' ').append(line.substr(0, end)) += '\n';
      line.remove_prefix(end + 1);
      indent = is_entry ? column : 2, least = 0;
    }
    all.append(indent, ' ').append(line);
    if (ends) all += '\n';
  }
  return all;
}

}  // namespace longhaul::manuals
