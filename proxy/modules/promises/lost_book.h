// SPDX-License-Identifier: Apache-2.0
// Records of lost writes as the text that a daemon leaves for the next one. It is believed as a whole or not
// at all: what a power cut damaged is not. Leaves the file to proxy/state_keeper.h.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"

namespace longhaul::promises {

// Bounds what is read: names are the most of it, and take two digits a byte.
inline constexpr std::size_t kMostLostBookBytes = 2 * LostWrites::kMostNameBytes + (1 << 20);

std::string lost_book_text(const std::vector<LostWrites::Record>& records);
// Nothing, unless it is what lost_book_text() gave.
std::optional<std::vector<LostWrites::Record>> parse_lost_book(std::string_view text);

}  // namespace longhaul::promises
