// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/history_view.h"

#include <algorithm>

namespace longhaul::control {

std::string view_history(const History::Series& series, std::uint64_t since) {
  const auto step = static_cast<std::uint64_t>(series.step().count());
  const auto newest = series.newest();
  const auto kept = std::min<std::uint64_t>(series.kept(), newest + 1);
  auto first = newest + 1 - kept;
  if (since / step >= first) first = std::min(newest + 1, since / step + (since % step > 0 ? 1 : 0));
  std::string text = R"({"step_s":)" + std::to_string(step) + R"(,"from_s":)" + std::to_string(first * step) +
                     R"(,"slots":[)";
  text.reserve(text.size() + static_cast<std::size_t>(newest + 1 - first) * 48);
  for (auto number = first; number <= newest; ++number) {
    const auto& slot = series.at(number);
    if (number > first) text += ',';
    if (slot.samples == 0) {
      text += "null";
      continue;
    }
    char separator = '[';
    for (const auto value :
         {slot.bytes.lan_in, slot.bytes.lan_out, slot.bytes.wan_in, slot.bytes.wan_out, slot.most_flows}) {
      text += separator;
      text += std::to_string(value);
      separator = ',';
    }
    text += ']';
  }
  return text + "]}\n";
}

}  // namespace longhaul::control
