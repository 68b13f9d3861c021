// SPDX-License-Identifier: Apache-2.0
// How long a known answer about a file, or about its volume, may be used: while changes by others would be
// noticed, or for a bounded time. Changes through this connection are counted elsewhere (files.h).
#pragma once
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/open.h"

namespace longhaul::smb::smb2 {

// A shared lease is not broken by a client that changes attributes without opening the file's data:
// attributes are trusted for that long.
inline constexpr modules::Duration kSharedLife = std::chrono::seconds(2);

// Changes of a file's attributes would be noticed: an oplock keeps others away, or the file is watched.
bool attributes_guarded(const Open& open, const Features& features);

// An answer that has that age, asked through this open.
enum class AnswerAbout : std::uint8_t { file, volume };
bool may_be_used(AnswerAbout about, const Open& open, modules::Duration age,
                 const Surroundings& surroundings);

}  // namespace longhaul::smb::smb2
