// SPDX-License-Identifier: Apache-2.0
// See unused_opens.h.
#include "proxy/modules/smb/smb2/unused_opens.h"

namespace longhaul::smb::smb2 {

std::uint64_t UnusedOpens::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [number, closing] : closing_) bytes += closing.handle.bytes;
  return bytes;
}

void UnusedOpens::close(TimePoint now, Number number, const Handle& handle) {
  files_.insert(handle.file);
  Closing& closing = closing_.emplace(number, Closing{.handle = handle}).first->second;
  closing.is_sent = send(now, number, handle);
  let_go_of_unsent(now);
}

bool UnusedOpens::send(TimePoint now, Number number, const Handle& handle) {
  const CloseRequest request{.file = handle.file};
  return side_.inject_close(
      now, handle.session, handle.tree,
      [request](const RequestHead& head) { return build_close_request(head, request); },
      [this, number](TimePoint then, const Message&, const Connection::Outcome&) {
        if (const auto closed = closing_.extract(number); !closed.empty())
          files_.erase(closed.mapped().handle.file);
        side_.let_go(then, number);
      });
}

void UnusedOpens::let_go_of_unsent(TimePoint now) {
  if (closing_.empty() || !side_.connection().sessions().any_untouchable()) return;
  for (const auto& [number, closing] : closing_)
    if (!closing.is_sent) side_.let_go(now, number);
}

void UnusedOpens::on_ids_freed(TimePoint now) {
  for (auto& [number, closing] : closing_)
    if (!closing.is_sent) closing.is_sent = send(now, number, closing.handle);
  let_go_of_unsent(now);
}

}  // namespace longhaul::smb::smb2
