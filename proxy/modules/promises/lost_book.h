// SPDX-License-Identifier: Apache-2.0
// Records of lost writes as the text that a daemon leaves for the next one. The text is accepted as a whole
// or not at all, so that damage from a power failure is detected. Also parses and writes the lines of
// marks_text.h. The keepers handle the files.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"

namespace longhaul::promises {

// Bounds the size that is read: most of it is names, with two digits a byte.
inline constexpr std::size_t kMostLostBookBytes = 2 * LostRecords::kMostNameBytes + (1 << 20);

std::string lost_book_text(const std::vector<LostWrites::Record>& records);
// Returns nullopt for any text that lost_book_text() did not produce.
std::optional<std::vector<LostWrites::Record>> parse_lost_book(std::string_view text);

// The mark of a file, or the end of a mark: "+ number near client server port share path spelled" or "-
// number".
struct MarkLine {
  std::uint64_t number = 0, near = 0;
  std::optional<LostWrites::File> file;
};
std::string mark_text(const MarkLine& mark);
std::optional<MarkLine> parse_mark(std::string_view line);

}  // namespace longhaul::promises
