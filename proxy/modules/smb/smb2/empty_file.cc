// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/empty_file.h"

namespace longhaul::smb::smb2 {

LeavesEmpty leaves_empty(const Element& request) {
  if (request.header.command == Command::flush) return LeavesEmpty::untouched;
  if (request.header.command != Command::set_info) return LeavesEmpty::no;
  const auto set = parse_set_info_request(request.bytes);
  if (!set || set->type != InfoType::file || set->additional != 0) return LeavesEmpty::no;
  switch (set->info_class) {
    case file_info::end_of_file:
      return end_of_file_leaves_empty(set->buffer);
    case file_info::basic:
      return basic_leaves_empty(set->buffer);
    default:
      return LeavesEmpty::no;
  }
}

}  // namespace longhaul::smb::smb2
