// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/empty_file.h"

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

// [MS-FSCC] 2.4.14, FileEndOfFileInformation; 2.4.7, FileBasicInformation: four times, attributes, reserved.
constexpr std::size_t kEndOfFileBytes = 8, kTimes = 4, kBasicBytes = kTimes * 8 + 8;

// [MS-FSCC] 2.4.7: a time of -1, and attributes of 0, stay as
// they are; of -2 and less not every server takes all.
bool sets_times_alone(Bytes basic) {
  if (basic.size() != kBasicBytes || load_le<std::uint32_t>(basic, kTimes * 8) != 0) return false;
  for (std::size_t i = 0; i < kTimes; ++i)
    if (static_cast<std::int64_t>(load_le<std::uint64_t>(basic, i * 8)) < -1) return false;
  return true;
}

}  // namespace

LeavesEmpty leaves_empty(const Element& request) {
  if (request.header.command == Command::flush) return LeavesEmpty::untouched;
  if (request.header.command != Command::set_info) return LeavesEmpty::no;
  const auto set = parse_set_info_request(request.bytes);
  if (!set || set->type != InfoType::file || set->additional != 0) return LeavesEmpty::no;
  if (set->info_class == file_info::end_of_file && set->buffer.size() == kEndOfFileBytes &&
      load_le<std::uint64_t>(set->buffer, 0) == 0)
    return LeavesEmpty::untouched;
  if (set->info_class == file_info::basic && sets_times_alone(set->buffer)) return LeavesEmpty::with_times;
  return LeavesEmpty::no;
}

}  // namespace longhaul::smb::smb2
