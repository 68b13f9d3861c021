// SPDX-License-Identifier: Apache-2.0
// Listings that a client begins in the compound that opens the directory, as Linux does: the beginning is the
// server's own response, which also shows to which open the listing belongs. The far half fetches the rest.
#pragma once
#include <optional>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb2/client_listing.h"
#include "proxy/modules/smb/smb2/name_changes.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class ListingsWithOpen {
 public:
  // The references outlive this object.
  ListingsWithOpen(NearSide& side, const NameChanges& name_changes)
      : side_(side), name_changes_(name_changes) {}

  // A compound is about to pass: if it begins a listing, the far half is told.
  void passes(const Message& message);
  // The response to a QUERY_DIRECTORY; nullopt: an error. Returns the listing that continues after it, or
  // nullopt if it was not begun here, or cannot be continued.
  std::optional<ClientListing> answered(const Pending& request,
                                        const std::optional<BufferResponse>& response);

 private:
  NearSide& side_;
  const NameChanges& name_changes_;
  KeyedMap<MessageId, ClientListing> begun_;
};

}  // namespace longhaul::smb::smb2
