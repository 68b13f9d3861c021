// SPDX-License-Identifier: Apache-2.0
// Records of lost writes as the text that a daemon leaves for the next one. It is accepted as a whole or not
// at all, so that damage from a power cut is detected. proxy/state_keeper.h has the file.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"

namespace longhaul::promises {

// Bounds the size that is read: names are most of it, and take two digits a byte.
inline constexpr std::size_t kMostLostBookBytes = 2 * LostWrites::kMostNameBytes + (1 << 20);

std::string lost_book_text(const std::vector<LostWrites::Record>& records);
// No result for any text that lost_book_text() did not produce.
std::optional<std::vector<LostWrites::Record>> parse_lost_book(std::string_view text);

}  // namespace longhaul::promises
