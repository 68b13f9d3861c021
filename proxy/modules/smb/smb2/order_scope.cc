// SPDX-License-Identifier: Apache-2.0
// See order_scope.h.
#include "proxy/modules/smb/smb2/order_scope.h"

#include "proxy/modules/smb/smb2/look.h"

namespace longhaul::smb::smb2 {

OrderScope order_scope_of(const Message& message, Connection& connection) {
  using Kind = OrderScope::Kind;
  const Header& header = message.header();
  const Pending* request = connection.pending(header.message_id);
  if (!message.single()) {
    // Each of its requests, alone, would wait for no more than this file.
    if (!request || !request->opening || !look_in(message)) return {};
    OrderScope scope{.kind = Kind::file};
    scope.file = request->opening->group;
    return scope;
  }
  if (header.command == Command::cancel || header.command == Command::oplock_break) request = nullptr;
  const auto of_file = [&](Kind kind) {
    const Open* open = request ? connection.open(request->file) : nullptr;
    OrderScope scope{.kind = kind};
    if (open) scope.file = open->group;
    if (request) scope.offset = request->offset, scope.length = request->length;
    return scope;
  };
  switch (header.command) {
    case Command::negotiate:
    case Command::tree_connect:
    case Command::echo:
    case Command::cancel:
    case Command::change_notify:
      return {.kind = Kind::nothing};
    case Command::create: {
      OrderScope scope{.kind = Kind::file};
      if (request && request->opening) scope.file = request->opening->group;
      return scope;
    }
    case Command::read: {
      // Up to any end: a write after the range may move the end of the file.
      OrderScope scope = of_file(Kind::range);
      scope.length = ~std::uint64_t{0} - scope.offset;
      return scope;
    }
    case Command::write:
      return of_file(Kind::range);
    case Command::close:
    case Command::flush:
    case Command::lock:
      return of_file(Kind::file);
    case Command::query_info:
      if (!request || request->info_type == InfoType::file_system || request->info_type == InfoType::quota)
        return {};
      return of_file(Kind::file);
    case Command::set_info: {
      if (!request || request->info_type == InfoType::file_system || request->info_type == InfoType::quota)
        return {};
      const bool names =
          request->info_type == InfoType::file &&
          (request->info_class == file_info::rename || request->info_class == file_info::rename_ex ||
           request->info_class == file_info::link);
      return names ? OrderScope{} : of_file(Kind::file);
    }
    default:
      return {};
  }
}

}  // namespace longhaul::smb::smb2
