// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/screen_texts.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <ostream>

#include "proxy/cli/answer_values.h"
#include "proxy/cli/table.h"
#include "proxy/cli/wrap.h"

namespace longhaul::cli {

namespace json = boost::json;

std::string rtt(const json::value& value) {
  return value.is_null() ? "-" : milliseconds_text(value.to_number<double>());
}

std::string age(const json::value& value) {
  return value.is_null() ? "-" : age_text(value.to_number<double>());
}

std::string bytes_line(const json::value& bytes) {
  return "LAN in " + bytes_text(number(bytes.at("lan_in"))) + ", out " +
         bytes_text(number(bytes.at("lan_out"))) + "; WAN in " + bytes_text(number(bytes.at("wan_in"))) +
         ", out " + bytes_text(number(bytes.at("wan_out")));
}

std::string features_line(const json::value& features) {
  std::string line;
  for (const auto& [name, value] : features.as_object())
    line += (line.empty() ? "" : " ") + std::string(name) + "=" + text(value);
  return line;
}

std::string preset_words(const json::value& preset) {
  return preset.is_null() ? "" : "preset " + text(preset) + ": ";
}

void line(std::ostream& out, std::string_view title, std::string_view content) {
  out << titled(title, content);
}

std::string counters_line(const json::value& counters) {
  std::string said;
  for (const auto& [name, value] : counters.as_object()) {
    if (number(value) == 0) continue;
    std::string words(name);
    std::ranges::replace(words, '_', ' ');
    const bool bytes = words.ends_with("bytes");
    said += (said.empty() ? "" : ", ") + words + " " + (bytes ? bytes_text(number(value)) : text(value));
  }
  return said.empty() ? std::string(kNothingYet) : said;
}

}  // namespace longhaul::cli
