// SPDX-License-Identifier: Apache-2.0
// What may be shown of words from outside.
#include "tools/measuring/trouble.h"

#include <algorithm>

namespace longhaul::measuring {

std::string fit_to_print(std::string_view words) {
  constexpr std::size_t kMost = 400;  // a sentence, and the names in it
  std::string fit{words.substr(0, kMost)};
  // No UTF-8 either: terminals take some of it for escapes, too (U+0080 to U+009F).
  std::ranges::replace_if(
      fit, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return fit;
}

}  // namespace longhaul::measuring
