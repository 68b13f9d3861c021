// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_closes.h"

#include <algorithm>
#include <utility>

namespace longhaul::smb::smb1 {

bool may_be_closed_early(const Open& open, const Header& header, const CloseRequest& close) {
  return !open.delete_on_close && !open.changed && open.writes == open.flushed_writes && !open.locked &&
         (close.last_write == 0 || close.last_write == 0xFFFFFFFF) && header.has_nt_status();
}

bool keeps_handle(const Open& open, const OpenTable::ByFid& opens) {
  if (open.may_cache_handle() || !open.looks || !open.name.exact) return open.may_cache_handle();
  return std::any_of(opens.begin(), opens.end(), [&](const auto& each) {
    const Open& other = each.second;
    return other.may_cache_handle() && other.uid == open.uid && other.name == open.name;
  });
}

void NearCloses::pass(const Frame& frame, const Open& open, MessageNumber number) {
  out_.tell(Promised{open.key, number});
  out_.pass_on(frame.bytes);
  Closing closing{.fid = open.fid, .range = {0, std::max<std::uint64_t>(open.confirmed_bytes, 1)}};
  if (open.writes != 0) closing.written = files_.of(open);
  closes_.emplace(number, std::move(closing));
}

std::optional<NearCloses::Outcome> NearCloses::kept(const Kept& kept) {
  const auto found = closes_.find(kept.message);
  if (found == closes_.end()) return std::nullopt;
  const Closing closed = std::move(found->second);
  closes_.erase(found);
  if (kept.status == 0) return Outcome::kept;
  if (closed.written) lost_.refused(*closed.written, closed.range, kept.status);
  return Outcome::failed;
}

bool NearCloses::is_closing(std::uint16_t fid) const {
  return std::any_of(closes_.begin(), closes_.end(),
                     [&](const auto& each) { return each.second.fid == fid; });
}

}  // namespace longhaul::smb::smb1
