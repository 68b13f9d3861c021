// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_oplocks.h"

namespace longhaul::smb::smb1 {

void NearOplocks::give_up(const FileName& name) {
  for (auto& [fid, open] : connection_.opens().all()) {
    if (!open.on_behalf || open.oplock == Oplock::none || open.name.path != name.path) continue;
    ahead_.given_up(open);
    writes_.stop(open.key);
    open.oplock = Oplock::none;
    out_.tell(Broken{open.key});
  }
}

bool NearOplocks::broken(const Message& message) {
  const auto locking = parse_locking_request(message.first());
  if (message.header.command != Command::locking_andx || !locking) return true;
  ++counters_.breaks;
  const Open* open = connection_.on_break(message);
  // The client has closed it; the CLOSE in progress acknowledges the break.
  if (!open) return !closes_.is_closing(locking->fid);
  writes_.stop(open->key);
  ahead_.changed_by_others(open->key);
  return true;
}

void NearOplocks::held(TimePoint now, const Held& held) {
  Open* open = connection_.open(held.open);
  if (!open || held.level > 3) return;
  open->on_behalf = true;
  open->oplock = static_cast<Oplock>(held.level);
  open->was_write_cached |= open->may_cache_writes();
  writes_.active(now, *open);
}

void NearOplocks::taken_back(const Break& message) {
  ++counters_.breaks;
  writes_.stop(message.open);
  ahead_.changed_by_others(message.open);
  if (Open* open = connection_.open(message.open)) {
    // Returned before: it stays so.
    const bool reads =
        open->oplock != Oplock::none && message.level == static_cast<std::uint8_t>(Oplock::level2);
    open->oplock = reads ? Oplock::level2 : Oplock::none;
  }
  if (!local_.is_client_over()) out_.tell(Broken{message.open});
}

void NearOplocks::watched(const Watched& watched) {
  Open* open = connection_.open(watched.open);
  if (!open) return;
  if (open->watched) ahead_.changed_by_others(watched.open);
  open->watched = watched.watched;
}

}  // namespace longhaul::smb::smb1
