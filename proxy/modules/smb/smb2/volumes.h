// SPDX-License-Identifier: Apache-2.0
// Queries about a share's volume (QUERY_INFO of file systems), for both halves: which these are, and which
// requests of a client may change the responses.
#pragma once
#include <optional>

#include "proxy/modules/smb/smb2/connection.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {

inline std::optional<Slice> question_of_volume(const Message& message) {
  if (!message.single() || message.header().command != Command::query_info) return std::nullopt;
  const auto request = parse_query_info_request(message.first().bytes);
  return request && request->type == InfoType::file_system ? question_of(*request) : std::nullopt;
}

// Whether the request may use or free space.
inline bool may_change_space(Connection& connection, const Element& element) {
  const Pending* request = connection.pending(element.header.message_id);
  switch (element.header.command) {
    case Command::write:
    case Command::set_info:
    case Command::ioctl:
      return true;
    case Command::create:
      return !request || !request->opening || request->opening->disposition != Disposition::open;
    case Command::close: {
      const Open* open = request ? connection.open(request->file) : nullptr;
      return open && (open->deletes || open->options & create_options::delete_on_close);
    }
    default:
      return false;
  }
}

// Whether handles end, and numbers of trees may be reused.
inline bool ends_trees(Command command) {
  return command == Command::session_setup || command == Command::logoff ||
         command == Command::tree_connect || command == Command::tree_disconnect;
}

}  // namespace longhaul::smb::smb2
