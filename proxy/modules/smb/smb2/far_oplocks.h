// SPDX-License-Identifier: Apache-2.0
// Oplocks that the far half requests for clients that request none: for which CREATEs, and how they are
// hidden from the client. far_order.h returns them when the server breaks them.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "proxy/config/features.h"
#include "proxy/modules/smb/features.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

class FarOplocks {
 public:
  explicit FarOplocks(Connection& connection) : connection_(connection) {}

  // Whether to request a batch oplock with this request, which is about to be sent. If so, its response must
  // be passed to asked_for().
  bool ask_for(const Message& message, const Features& features);
  // Such a request without its request for a durable handle. A server ignores that request if no batch oplock
  // and no lease is requested (3.3.5.9.6). With the added oplock it would grant a handle that the client
  // could reconnect after a reset, without being informed that promised writes are lost.
  static Slice without_durability(const Message& create);
  // The response to such a request, which must show "no oplock" to the client; the near half receives the
  // granted one (level 0: none).
  std::optional<Held> asked_for(const Connection::Outcome& outcome);
  bool asked() const { return !asked_.empty(); }
  bool contended(const FileName& name) const { return contended_.contains(name.path); }

 private:
  // Names that other clients opened too while an oplock was held here: never again on this connection.
  static constexpr std::size_t kMostContended = 1024;

  Connection& connection_;
  KeyedSet<MessageId> asked_;
  std::set<std::u16string> contended_;
};

}  // namespace longhaul::smb::smb2
