// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/listings_with_open.h"

#include <utility>

namespace longhaul::smb::smb2 {

void ListingsWithOpen::passes(const Message& message) {
  const auto request = query_with_open(message);
  const Pending* pending =
      request ? side_.connection().pending(message.elements.back().header.message_id) : nullptr;
  if (!pending || !side_.surroundings().features.metadata) return;
  begun_[pending->id] = {.generation = pending->id,
                         .info_class = request->info_class,
                         .seen = {.changes = name_changes_.in(pending->session, pending->tree)},
                         .asked = true,
                         .fetched = {},
                         .waiting = {}};
  side_.out().tell(Enumerate{.open = {},
                             .message = number_of(pending->id),
                             .info_class = request->info_class,
                             .pattern = Slice::copy_of(request->pattern)});
}

std::optional<ClientListing> ListingsWithOpen::answered(const Pending& request,
                                                        const std::optional<BufferResponse>& response) {
  const auto found = begun_.find(request.id);
  if (found == begun_.end()) return std::nullopt;
  ClientListing listing = std::move(found->second);
  begun_.erase(found);
  const Open* open = side_.connection().open(key_of(request.session, request.tree, request.file));
  if (!response || !open) return std::nullopt;
  const auto entries = parse_listing(listing.info_class, Slice::copy_of(response->buffer));
  if (!entries) return std::nullopt;
  listing.active = true;
  listing.seen.doubts = open->group->count(&FileCounts::doubts);
  listing.served = entries->size();
  return listing;
}

}  // namespace longhaul::smb::smb2
