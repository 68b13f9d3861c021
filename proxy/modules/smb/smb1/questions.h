// SPDX-License-Identifier: Apache-2.0
// The halves' key of a query: a QUERY_FILE, QUERY_PATH or QUERY_FS_INFORMATION without its file or path; and
// the content of an Answer to one.
#pragma once
#include <optional>
#include <string>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/transactions.h"

namespace longhaul::smb::smb1 {

// Function, level, MaxParameterCount, MaxDataCount.
inline constexpr std::size_t kQuestionBytes = 8;
// [MS-CIFS] 2.2.6.6.1: where the name begins in the parameters of QUERY_PATH_INFORMATION.
inline constexpr std::size_t kPathAt = 6;

inline std::uint16_t fid_of_question(const Transaction& part) {
  return part.parameters.size() < 2 ? std::uint16_t{0} : u16_at(part.parameters, 0);
}

// Returns nullopt if it is not one of these, or has data of its own (lists of extended attributes).
inline std::optional<std::string> question_of(const Transaction& part) {
  if (!part.is_whole() || !part.data.empty()) return std::nullopt;
  std::size_t level_at = 0;
  switch (static_cast<Trans2>(part.function)) {
    case Trans2::query_file_information:
      level_at = 2;
      if (part.parameters.size() != 4) return std::nullopt;
      break;
    case Trans2::query_path_information:
      if (part.parameters.size() < kPathAt) return std::nullopt;
      break;
    case Trans2::query_fs_information:
      if (part.parameters.size() != 2) return std::nullopt;
      break;
    default:
      return std::nullopt;
  }
  Buffer question;
  append_field<std::uint16_t>(question, part.function);
  append_field<std::uint16_t>(question, u16_at(part.parameters, level_at));
  append_field<std::uint16_t>(question, static_cast<std::uint16_t>(part.max_parameters));
  append_field<std::uint16_t>(question, static_cast<std::uint16_t>(part.max_data));
  return std::string(as_text(question));
}

// [MS-FSCC] 2.4 from 1000 on ([MS-SMB] 2.2.2.3.5), and two of [MS-CIFS] 2.2.8.3: their responses are the same
// by path and by FID.
inline bool is_of_file(std::uint16_t level) {
  constexpr std::uint16_t kBasic = 0x0101, kStandard = 0x0102, kFscBasic = 1004, kFscStandard = 1005,
                          kFscInternal = 1006;
  return level == kBasic || level == kStandard || level == kFscBasic || level == kFscStandard ||
         level == kFscInternal;
}
inline std::uint16_t level_of(const std::string& question) { return u16_at(as_bytes(question), 2); }

inline Trans2 function_of(const std::string& question) {
  return static_cast<Trans2>(u16_at(as_bytes(question), 0));
}

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
