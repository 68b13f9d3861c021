// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/empty_file.h"

#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/transactions.h"

namespace longhaul::smb::smb1 {
namespace {

// [MS-CIFS] 2.2.8.4, [MS-SMB] 2.2.2.3.5: levels of their own, and 1000 and the class of [MS-FSCC] 2.4.
constexpr std::uint16_t kBasic = 0x0101, kEndOfFile = 0x0104, kPassThrough = 1000;
constexpr std::uint16_t kFscBasic = kPassThrough + 4, kFscEndOfFile = kPassThrough + 20;
constexpr std::size_t kEndOfFileBytes = 8, kTimes = 4, kTimesBytes = kTimes * 8;

// Four times, attributes, perhaps reserved. [MS-FSCC] 2.4.7: a time of -1, and attributes of 0, stay as
// they are; of -2 and less not every server takes all.
bool sets_times_alone(Bytes basic) {
  if (basic.size() != kTimesBytes + 4 && basic.size() != kTimesBytes + 8) return false;
  for (std::size_t i = 0; i < kTimes; ++i)
    if (static_cast<std::int64_t>(u64_at(basic, i * 8)) < -1) return false;
  return u32_at(basic, kTimesBytes) == 0;
}

}  // namespace

LeavesEmpty leaves_empty(const Message& request) {
  if (request.is_chained()) return LeavesEmpty::no;
  if (request.header.command == Command::flush) return LeavesEmpty::untouched;
  if (request.header.command != Command::trans2) return LeavesEmpty::no;
  const auto part = parse_transaction(request, request.first());
  // [MS-CIFS] 2.2.4.46.1: with Flags of 2 there is no answer.
  constexpr std::size_t kFlagsAt = 10;
  if (!part || !part->is_whole() || u16_at(request.first().words, kFlagsAt) != 0 ||
      static_cast<Trans2>(part->function) != Trans2::set_file_information)
    return LeavesEmpty::no;
  const auto about = parse_file_information(part->parameters);
  if (!about) return LeavesEmpty::no;
  if (about->level == kEndOfFile || about->level == kFscEndOfFile) {
    const bool of_nothing = part->data.size() == kEndOfFileBytes && u64_at(part->data, 0) == 0;
    return of_nothing ? LeavesEmpty::untouched : LeavesEmpty::no;
  }
  if ((about->level == kBasic || about->level == kFscBasic) && sets_times_alone(part->data))
    return LeavesEmpty::with_times;
  return LeavesEmpty::no;
}

}  // namespace longhaul::smb::smb1
