// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/scope.h"

namespace longhaul::smb::smb1 {

Scope scope_of(const Message& request, Connection& connection) {
  using Of = Scope::Of;
  const Command command = request.header.command;
  switch (command) {
    case Command::negotiate:
    case Command::session_setup_andx:
    case Command::echo:
    case Command::nt_cancel:
    case Command::transaction:
    case Command::transaction_secondary:
      return {};
    case Command::tree_disconnect:
    case Command::logoff_andx:
    case Command::process_exit:
      return {Of::silence, {}, {}};  // they close all open files
    default:
      break;
  }
  if (!request.is_chained()) {
    if (const Open* open = connection.open_of(request))
      return {command == Command::close ? Of::closing : Of::open, open->key, {}};
    // Pipes and similar files have no promises. But FLUSH may mean all files (FID 0xFFFF).
    if (command != Command::flush && fid_of(request.first())) return {};
  }
  return {Of::everything, {}, {}};
}

}  // namespace longhaul::smb::smb1
