// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/far_oplocks.h"

#include <algorithm>
#include <array>

#include "proxy/modules/smb/smb2/build.h"

namespace longhaul::smb::smb2 {

bool FarOplocks::ask_for(const Message& message, const Features& features) {
  if (!message.single() || message.header().command != Command::create) return false;
  if (!features.read_ahead && !features.write_behind) return false;
  const Pending* pending = connection_.pending(message.header().message_id);
  if (!pending || !pending->opening) return false;
  const Open& open = *pending->opening;
  const Tree* tree = connection_.tree(pending->session, pending->tree);
  if (!tree || tree->type != ShareType::disk) return false;

  auto create = parse_create_request(message.first().bytes);
  if (!create || create->oplock != OplockLevel::none || create->lease || create->name.empty()) return false;
  if (create->persistent || open.reconnected || open.replayed) return false;
  // 3.3.5.9.10: by its id a server recognises a replay, whether it grants durability or not. So it stays in
  // the request, and with an oplock it would be granted.
  if (create->durable == Durable::request_v2) return false;
  // 2.2.13.2.13: an application that moves between machines finds its durable handles by such a context.
  const auto is_long = [](const CreateContext& context) { return context.name.size() != 4; };
  if (create->durable != Durable::none && std::ranges::any_of(create->contexts, is_long)) return false;
  if (open.options & (create_options::directory_file | create_options::open_by_file_id)) return false;
  bool reads = features.read_ahead && open.may_read() && !open.write_through();
  bool writes = features.write_behind && open.may_write() && !open.write_through();
  if (!reads && !writes) return false;
  // Two opens of one client with oplocks break each other: only the first of a name gets an oplock.
  if (open.group->count(&FileCounts::opens) != 0 || connection_.being_opened(*open.group, pending->id))
    return false;
  if (contended_.size() >= kMostContended || contended_.contains(open.name.path)) return false;
  asked_.insert(pending->id);
  return true;
}

Slice FarOplocks::without_durability(const Message& create) {
  const auto request = parse_create_request(create.first().bytes);
  if (!request || request->durable == Durable::none) return create.frame.bytes;
  constexpr std::array kDurable{create_context::durable};
  return without_contexts(create.first().bytes, kDurable);
}

std::optional<Held> FarOplocks::asked_for(const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes)
    if (change.kind == Change::Kind::broken && change.open->on_behalf && contended_.size() < kMostContended)
      contended_.insert(change.open->name.path);
  if (asked_.empty()) return std::nullopt;
  std::optional<Held> held;
  for (const auto& answered : outcome.answered) {
    if (answered.interim || asked_.erase(answered.request.id) == 0) continue;
    for (const Change& change : outcome.changes) {
      if (change.kind != Change::Kind::opened || change.by != answered.request.id) continue;
      Open& open = *change.open;
      open.on_behalf = open.oplock != OplockLevel::none;
      // Shared caching is broken only after another client's write has been answered. A client that requested
      // none would then read old bytes, so it is not used.
      const bool alone = open.caching & lease_state::write;
      if (!alone) open.caching = lease_state::none;
      held = Held{open.key, static_cast<std::uint8_t>(alone ? open.oplock : OplockLevel::none)};
    }
  }
  return held;
}

}  // namespace longhaul::smb::smb2
