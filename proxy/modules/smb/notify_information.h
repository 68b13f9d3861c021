// SPDX-License-Identifier: Apache-2.0
// Responses to CHANGE_NOTIFY of SMB2 and NT_TRANSACT_NOTIFY_CHANGE of SMB1 ([MS-FSCC] 2.7.1). Parser only:
// borrows from its input.
#pragma once
#include <vector>

#include "codecs/bytes.h"
#include "codecs/result.h"

namespace longhaul::smb {

enum class NotifyAction : std::uint32_t {
  added = 1,
  removed = 2,
  modified = 3,
  renamed_from = 4,
  renamed_to = 5
};
struct NotifyEntry {
  NotifyAction action = NotifyAction::modified;  // other values are kept unchanged
  Bytes name;                                    // UTF-16LE, in the folder
};
Result<std::vector<NotifyEntry>> parse_notify_information(Bytes buffer);

// The filter for the changes that we need ([MS-SMB2] 2.2.35): all except times of last access.
inline constexpr std::uint32_t kNotifyFilter = 0xFDF;
inline constexpr std::uint32_t kNotifyBytes = 8 << 10;

}  // namespace longhaul::smb
