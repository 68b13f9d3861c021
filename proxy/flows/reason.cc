// SPDX-License-Identifier: Apache-2.0
// All reasons in one list, and the table as docs/troubleshooting.md shows it.
#include "proxy/flows/reason.h"

#include "proxy/modules/modules.h"

namespace longhaul::flows {

std::vector<Reason> all_reasons() {
  std::vector<Reason> all;
  for (const ReasonText* row : reasons::kOwn) all.emplace_back(*row);
  for (const modules::Descriptor* module : modules::descriptors())
    for (const ReasonText* row : module->reasons) all.emplace_back(*row);
  return all;
}

std::optional<Reason> reason_of(std::string_view code) {
  for (const Reason reason : all_reasons())
    if (reason->code == code) return reason;
  return std::nullopt;
}

std::string reason_table_markdown() {
  std::string text = "| code | what happened | what to do |\n| --- | --- | --- |\n";
  auto all = all_reasons();
  all.insert(all.begin() + 1, reasons::not_intercepted);
  for (const Reason reason : all) {
    text += "| `";
    text += reason->code;
    text += "` | ";
    text += reason->sentence;
    text += " | ";
    text += reason->remedy;
    text += " |\n";
  }
  return text;
}

}  // namespace longhaul::flows
