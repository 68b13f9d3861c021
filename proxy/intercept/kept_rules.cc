// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/kept_rules.h"

#include <charconv>
#include <system_error>

#include "proxy/process/private_file.h"

namespace longhaul::intercept {
namespace {

namespace fs = std::filesystem;
using config::TextError;
using config::TextResult;

constexpr std::string_view kKeptHead = "# longhaul fail = closed, port ";
constexpr std::size_t kMostKept = 4 << 20;

}  // namespace

TextResult<void> keep_rules(const fs::path& state_dir, const ClosedRules& rules) {
  const fs::path file = state_dir / kKeptRulesName;
  if (!rules.close_something()) {
    std::error_code error;
    fs::remove(file, error);
    if (error) return TextError{file.string() + " cannot be removed: " + error.message()};
    return {};
  }
  const std::string text = std::string(kKeptHead) + std::to_string(rules.port) + "\n" + replace_closed_text(rules);
  // Do not wait for the disk if nothing has changed.
  if (const auto before = process::read_private_file(file, kMostKept); before && before->text == text) return {};
  if (const auto written = process::replace_private_file(file, text, process::Durable::yes); !written)
    return TextError{file.string() + " cannot be written: " + process::reason_of(written.error())};
  return {};
}

TextResult<KeptRules> read_kept_rules(const fs::path& file) {
  const auto read = process::read_private_file(file, kMostKept);
  if (!read) return TextError{file.string() + " cannot be read: " + process::reason_of(read.error())};
  const std::string& text = read->text;
  const std::size_t end = text.find('\n');
  KeptRules kept;
  const bool has_head = text.starts_with(kKeptHead) && end != std::string::npos &&
                        std::from_chars(text.data() + kKeptHead.size(), text.data() + end, kept.port).ptr ==
                            text.data() + end;
  if (!has_head || kept.port == 0) return TextError{file.string() + " does not hold packet rules of longhaul"};
  kept.commands = text.substr(end + 1);
  return kept;
}

}  // namespace longhaul::intercept
