// SPDX-License-Identifier: Apache-2.0
// How long a cached response about a file, or about its volume, may be used: while changes by others would be
// noticed, or for a limited time. files.h counts changes through this connection.
#pragma once
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/open.h"

namespace longhaul::smb::smb2 {

// A shared lease is not broken by a client that changes attributes without opening the file's data:
// attributes are used for at most that long.
inline constexpr modules::Duration kSharedLife = std::chrono::seconds(2);

// Whether changes of a file's attributes would be noticed: an oplock excludes others, or the file is watched.
bool attributes_guarded(const Open& open, const Features& features);

// A response of that age, queried through this open.
enum class AnswerAbout : std::uint8_t { file, volume };
bool may_be_used(AnswerAbout about, const Open& open, modules::Duration age,
                 const Surroundings& surroundings);

}  // namespace longhaul::smb::smb2
