// SPDX-License-Identifier: Apache-2.0
// The file of a daemon's history: any bytes, and any numbers under a right checksum. An accepted history
// takes samples at any time, and is written again within its limit.
#include <xxhash.h>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/control/history.h"

namespace longhaul::fuzz::history_target {
using longhaul::control::History;

namespace {

void check(const std::string& text, std::uint64_t time) {
  auto history = History::parse(text);
  if (!history) return;
  longhaul::fuzz::require(history->text() == text);
  history->add(time, {.bytes = {1, 2, 3, 4}, .most_flows = 5, .samples = 1});
  const auto again = History::parse(history->text());
  longhaul::fuzz::require(again && again->text() == history->text() &&
                          history->text().size() <= History::kMostBytes);
}

}  // namespace

// The input is laid over an empty history, for one of the right length would not be found.
FUZZ_TARGET(history) {
  std::uint64_t time = 0;
  for (std::size_t i = 0; i < size && i < 8; ++i) time = time << 8 | data[i];
  check(std::string(reinterpret_cast<const char*>(data), size), time);
  static const std::string empty = History().text();
  std::string text = empty;
  const std::size_t room = text.size() - 8 - 19;
  for (std::size_t i = 0; i < size && i < room; ++i) text[19 + i] = static_cast<char>(data[i]);
  auto sum = XXH3_64bits(text.data(), text.size() - 8);
  for (std::size_t i = 0; i < 8; ++i) text[text.size() - 1 - i] = static_cast<char>(sum >> 8 * i);
  check(text, time);
  return 0;
}

}  // namespace longhaul::fuzz::history_target
