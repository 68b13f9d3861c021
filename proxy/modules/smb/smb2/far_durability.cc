// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/far_durability.h"

#include <algorithm>
#include <array>

#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/near_writes.h"

namespace longhaul::smb::smb2 {

void FarDurability::on_request(const Message& message) {
  const Header& header = message.header();
  if (header.command != Command::write || !message.single()) return;
  const auto request = parse_write_request(message.first().bytes);
  const Open* open = request ? connection_.open(request->file) : nullptr;
  if (!open || !open->durable) return;
  const Tree* tree = connection_.tree(open->session, open->tree);
  if (!tree || !could_be_promised(*open, *tree, header, *request, connection_)) return;
  // Who has several on their way loses little by waiting, and keeps what it asked for.
  const bool one_by_one = !last_ || !connection_.pending(*last_);
  last_ = header.message_id;
  if (one_by_one) written_bytes_ += std::max<std::uint64_t>(request->data.size(), kLeastBytes);
}

bool FarDurability::trades(const Message& message, const config::Features& features) const {
  if (written_bytes_ < kTradedAfterBytes || !features.smb_write_behind) return false;
  const Header& header = message.header();
  if (header.command != Command::create || !message.single() || header.is_replay()) return false;
  const Pending* pending = connection_.pending(header.message_id);
  if (!pending || !pending->opening || pending->opening->reconnected) return false;
  const Open& open = *pending->opening;
  const Tree* tree = connection_.tree(pending->session, pending->tree);
  if (!tree || tree->type != ShareType::disk) return false;
  if (tree->capabilities & share_capabilities::continuous_availability) return false;
  if (!open.may_write() || open.write_through() || open.options & create_options::directory_file)
    return false;

  const auto create = parse_create_request(message.first().bytes);
  if (!create || create->persistent) return false;
  if (create->durable != Durable::request && create->durable != Durable::request_v2) return false;
  // 2.2.13.2.13: an application that moves between machines finds its handles by this, which needs them
  // durable.
  for (const CreateContext& context : create->contexts)
    if (context.name.size() != 4) return false;
  // Without caching of writes there are no promises to be had.
  if (create->oplock == OplockLevel::lease) return create->lease && create->lease->state & lease_state::write;
  return caching_of(create->oplock) & lease_state::write;
}

Slice without_durability(const Message& create) {
  constexpr std::array kDurable{create_context::durable, create_context::durable_v2};
  return without_contexts(create.first().bytes, kDurable);
}

}  // namespace longhaul::smb::smb2
