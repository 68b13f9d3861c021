// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_looks.h"

#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/looks.h"

namespace longhaul::smb::smb1 {

namespace {

using namespace std::chrono_literals;

// Others may change attributes without a break; valid as long as clients trust a listing.
constexpr modules::Duration kLife = 2s;

}  // namespace

std::optional<Slice> NearLooks::take(TimePoint now, const Message& message) {
  const Pending* pending = connection_.pending(number_of(message.header));
  if (!pending || !pending->opening || message.is_chained()) return std::nullopt;
  Open look = pending->opening->open;
  const Open* open = looked_at(connection_, look);
  if (!open || open->uid != message.header.uid) return std::nullopt;
  active_ = true;
  const auto found = handles_.find(open->key);
  if (found == handles_.end() || found->second.empty()) return std::nullopt;
  const Handle handle = found->second.front();
  const Slice request = request_of_look(epoch_, message);
  if (now - handle.came > kLife || as_text(handle.request.bytes()) != as_text(request.bytes())) {
    drop();
    active_ = true;
    return std::nullopt;
  }
  found->second.pop_front();
  --count_;
  const auto reply = parse_message(handle.reply.bytes().subspan(kFrameHeadBytes));
  if (!reply) return std::nullopt;
  const auto file = parse_nt_create_reply(reply->first());
  if (!file) return std::nullopt;
  out_.tell(Local{number_of(message.header), file->fid});
  const Renumbered given = renumbered(handle.reply, message.header.pid, message.header.mid);
  return Slice::joined(given.head.bytes(), given.rest.bytes());
}

bool NearLooks::pushed(TimePoint now, const Answer& answer, const Slice& attached) {
  if (answer.command != static_cast<std::uint16_t>(Command::nt_create_andx)) return false;
  if (answer.request.size() < kEpochBytes || attached.size() < kFrameHeadBytes + kHeaderBytes ||
      u32_at(answer.request.bytes(), 0) != epoch_)
    return true;
  active_ = true;
  const Open* open = connection_.open(answer.open);
  if (open && open->may_cache_handle() && count_ < kMostHandles && answer.request.size() <= kMostRequest &&
      attached.size() <= kMostReply) {
    ++count_;
    handles_[answer.open].push_back({answer.request, attached, now});
  } else {
    drop();
  }
  return true;
}

void NearLooks::drop() {
  if (!std::exchange(active_, false)) return;
  handles_.clear();
  count_ = 0;
  out_.tell(Drop{looks_key(), ++epoch_});
}

}  // namespace longhaul::smb::smb1
