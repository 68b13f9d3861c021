// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/name_changes.h"

namespace longhaul::smb::smb2 {

namespace {

bool may_change_name(const Element& request, Connection& connection) {
  switch (request.header.command) {
    case Command::create: {
      const auto create = parse_create_request(request.bytes);
      return !create || create->disposition != Disposition::open ||
             (create->options & create_options::delete_on_close);
    }
    case Command::set_info:
    case Command::write:
      return true;
    case Command::close: {
      const Pending* pending = connection.pending(request.header.message_id);
      const Open* open = pending ? connection.open(pending->file) : nullptr;
      return !open || (open->access & (access::delete_file | access::generic_all | access::maximum_allowed));
    }
    default:
      return false;
  }
}

}  // namespace

bool may_change_names(const Message& message, const Changes& changes, Connection& connection) {
  for (const Change& change : changes)
    if (change.kind == Change::Kind::voided) return true;
  for (const Element& element : message.elements)
    if (may_change_name(element, connection)) return true;
  return false;
}

void NameChanges::changed(SessionId session, TreeId tree) {
  const std::pair key{session, tree};
  if (changes_.contains(key) || changes_.size() < kMostTrees) {
    ++changes_[key];
  } else {
    ++others_;
  }
}

std::uint64_t NameChanges::in(SessionId session, TreeId tree) const {
  const auto found = changes_.find({session, tree});
  return others_ + (found == changes_.end() ? 0 : found->second);
}

}  // namespace longhaul::smb::smb2
