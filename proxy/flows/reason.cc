// SPDX-License-Identifier: Apache-2.0
// The reason table as docs/troubleshooting.md shows it. The table itself is in reason.h.
#include <string>

#include "proxy/flows/reason.h"

namespace longhaul::flows {

std::string reason_table_markdown() {
  std::string text = "| code | what happened | what to do |\n| --- | --- | --- |\n";
  for (const auto& row : kReasonTable) {
    text += "| `";
    text += row.code;
    text += "` | ";
    text += row.sentence;
    text += " | ";
    text += row.remedy;
    text += " |\n";
  }
  return text;
}

}  // namespace longhaul::flows
