// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/empty_file.h"

#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/transactions.h"

namespace longhaul::smb::smb1 {

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
  // [MS-CIFS] 2.2.8.4, [MS-SMB] 2.2.2.3.5: levels of its own, and 1000 and the class of [MS-FSCC] 2.4.
  switch (about->level) {
    case 0x0104:
    case 1000 + 20:
      return end_of_file_leaves_empty(part->data);
    case 0x0101:
    case 1000 + 4:
      return basic_leaves_empty(part->data);
    default:
      return LeavesEmpty::no;
  }
}

}  // namespace longhaul::smb::smb1
