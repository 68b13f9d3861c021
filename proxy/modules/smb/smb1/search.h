// SPDX-License-Identifier: Apache-2.0
// What the halves tell each other about searches: how one is named among opens, and what an Answer about it
// holds.
#pragma once
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

// A search handle (SID) as the key of Answer, More and Drop; no FID's key is equal to it.
inline OpenKey search_key(std::uint16_t uid, std::uint16_t tid, std::uint16_t sid) {
  OpenKey key = key_of(uid, tid, sid);
  key.id[2] = std::byte{'S'};
  return key;
}

// A QUERY_FILE_INFORMATION without its file, in Expect and Answer: level, MaxParameterCount, MaxDataCount.
inline constexpr std::size_t kQuestionBytes = 6;

// An Answer's attached bytes: the length of the parameters, the parameters, the data.
inline Slice joined_answer(Bytes parameters, Bytes data) {
  Buffer head;
  append_field<std::uint16_t>(head, static_cast<std::uint16_t>(parameters.size()));
  append(head, parameters);
  return Slice::joined(head, data);
}
struct SplitAnswer {
  Bytes parameters, data;
};
inline std::optional<SplitAnswer> split_answer(Bytes joined) {
  if (joined.size() < 2) return std::nullopt;
  const std::size_t parameters = u16_at(joined, 0);
  if (parameters > joined.size() - 2 || joined.size() - 2 - parameters > 0xFFFF) return std::nullopt;
  return SplitAnswer{joined.subspan(2, parameters), joined.subspan(2 + parameters)};
}

}  // namespace longhaul::smb::smb1
