// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/local_closes.h"

#include <algorithm>

namespace longhaul::smb::smb2 {

namespace {

bool only_answered_writes(const Open& open, const ChangesSince& since) {
  return open.lease && !open.on_behalf && (open.caching & lease_state::write) &&
         !since.other_than_writes(open) && open.group->count(&FileCounts::unsettled) == 0;
}

}  // namespace

// If the CLOSE is lost with the connection, a durable handle stays open at the server, until another open of
// the file breaks its lease. Only handles that outlast that would keep others away.
bool may_be_closed_locally(const Open& open, const ChangesSince& since) {
  const bool plain = open.disk_file && !open.outlasts_breaks && !open.reconnected && !open.replayed &&
                     !open.is_locked() && !(open.options & create_options::delete_on_close);
  return plain && (open.caching & lease_state::handle) && !open.break_pending &&
         (!since.may_be_unfinished(open) || only_answered_writes(open, since));
}

CloseResponse closed_as(const Open& open, std::uint16_t flags) {
  if (!(flags & kClosePostQueryAttributes)) return {};
  return {.flags = kClosePostQueryAttributes,
          .times = open.times,
          .allocation_bytes = open.allocation_bytes,
          .end_of_file = open.end_of_file,
          .file_attributes = open.file_attributes};
}

bool LocalCloses::acknowledge(const Message& message, const Connection& connection) const {
  if (under_way_.empty() || !message.single() || !message.header().is_unsolicited()) return false;
  const auto notification = parse_break(message.first().bytes);
  if (!notification) return false;
  const auto* oplock = std::get_if<OplockBreak>(&*notification);
  const auto* lease = std::get_if<LeaseBreakNotification>(&*notification);
  if (lease && connection.is_shared(lease->key)) return false;
  return std::any_of(under_way_.begin(), under_way_.end(), [&](const auto& each) {
    return (oplock && each.second.file == oplock->file) || (lease && each.second.lease == lease->key);
  });
}

}  // namespace longhaul::smb::smb2
