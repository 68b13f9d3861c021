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

std::string objects_use(const json::value& objects) {
  return bytes_text(number(objects.at("bytes"))) + " of " + bytes_text(number(objects.at("limit_bytes"))) +
         " in " + text(objects.at("objects")) + " stored responses";
}

bool objects_answer(const json::value& objects) {
  const auto* answers = objects.as_object().if_contains("answers");  // not from an earlier version
  return !answers || answers->as_bool();
}

void line(std::ostream& out, std::string_view title, std::string_view content) {
  out << titled(title, content);
}

// The words after the number, for counters whose names are not clear enough.
std::string counted_words(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"ahead_bytes", "read ahead"},
      {"ahead_used_bytes", "of these used"},
      {"ahead_wasted_bytes", "of these not used"},
      {"promises_made", "writes acknowledged early"},
      {"promised_bytes", "in these writes"},
      {"promises_kept", "of these acknowledged by the server"},
      {"promises_failed", "of these lost or refused"},
      {"late_errors", "losses reported to clients"},
      {"unpromised_files", "files without early acknowledgement"},
      {"metadata_answers", "names and attributes answered locally"},
      {"opens_ahead", "files opened ahead"},
      {"opens_ahead_used", "of them used"},
      {"opens_ahead_wasted", "of them not used"},
      {"injected", "requests sent by the module itself"},
      {"breaks", "oplock breaks"},
      {"changes_noticed", "changes by others"},
      {"cache_bytes", "served from the cache"},
      {"cache_disk_reads", "read from disk"},
      {"steps_aside", "flows no longer accelerated"},
  };
  for (const auto& [counter, words] : kWords)
    if (counter == name) return std::string(words);
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string counters_line(const json::value& counters) {
  std::string said;
  for (const auto& [name, value] : counters.as_object()) {
    if (number(value) == 0) continue;
    const bool bytes = std::string_view(name).ends_with("bytes");
    said += (said.empty() ? "" : ", ") + (bytes ? bytes_text(number(value)) : text(value)) + " " + counted_words(name);
  }
  return said.empty() ? std::string(kNothingYet) : said;
}

}  // namespace longhaul::cli
