// SPDX-License-Identifier: Apache-2.0
// The listing of an open directory at the near half: how far the client has received it, and what was fetched
// for it. near_listings.h changes it.
#pragma once
#include <deque>

#include "proxy/modules/smb/smb2/fetched_listing.h"
#include "proxy/modules/smb/smb2/message.h"
#include "proxy/modules/smb/smb2/message_ids.h"

namespace longhaul::smb::smb2 {

struct ClientListing {
  // Counts for names in the listing's tree: changes by this connection, and by others (Watched).
  struct Version {
    std::uint64_t changes = 0, doubts = 0;
  };
  MessageId generation{};  // the request that began it, or restarted it
  std::uint8_t info_class = 0;
  Version seen;            // when it was begun, or restarted
  bool at_server = false;  // its beginning was requested by the client, and is not answered yet
  bool active = false;     // entries after its beginning will arrive, or have arrived, as Answers
  bool afresh = false;     // the far half has restarted the listing at the server
  bool given_up = false;   // the client's queries are sent to the server from now on
  bool asked = false;      // by a separate request, for which the owner of the listing was decided
  // Entries that the server has sent to the client itself: in the compound that opened the directory.
  std::uint64_t told_before = 0;
  std::uint64_t served = 0;  // entries that the client has received
  FetchedListing fetched;
  std::deque<Message> waiting;  // the client's queries, in order
};

}  // namespace longhaul::smb::smb2
