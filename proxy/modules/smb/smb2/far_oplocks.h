// SPDX-License-Identifier: Apache-2.0
// Oplocks that the far half asks of the server for clients that ask for none: for which CREATEs, and how the
// client is kept from knowing. Who gives them back when the server breaks them is far_order.h.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "proxy/config/features.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

class FarOplocks {
 public:
  explicit FarOplocks(Connection& connection) : connection_(connection) {}

  // Whether this request, about to be sent, is to ask for a batch oplock. If so its answer is to be shown to
  // asked_for().
  bool ask_for(const Message& message, const config::Features& features);
  // Such a request without what asks for a durable handle. A server ignores that where no batch oplock and no
  // lease is asked for (3.3.5.9.6, 3.3.5.9.10); with the oplock that we add it would grant a handle that its
  // client could take up again after a reset, without learning that promised writes are lost.
  Slice without_durability(const Message& create);
  // The answer to such a request, which must say "no oplock" to the client; what is held is told to the near
  // half (level 0: nothing).
  std::optional<Held> asked_for(const Connection::Outcome& outcome);
  bool asked() const { return !asked_.empty(); }
  bool contended(const FileName& name) const { return contended_.contains(name.path); }

 private:
  // Names that others wanted too while we held an oplock: never again on this connection.
  static constexpr std::size_t kMostContended = 1024;

  Connection& connection_;
  KeyedSet<MessageId> asked_;
  std::set<std::u16string> contended_;
};

}  // namespace longhaul::smb::smb2
