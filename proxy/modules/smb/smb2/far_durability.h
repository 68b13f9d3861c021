// SPDX-License-Identifier: Apache-2.0
// Durable handles against early answers: which CREATEs go to the server without their request for durability,
// so that their writes can be promised. What may be promised otherwise is decided in near_writes.h.
//
// A client takes a durable handle up again after a reset and never learns that writes were lost; so a durable
// handle takes no promise. Clients that ask for durability with every open (Windows does, and Linux) would
// gain nothing. Once a connection has written much through such handles, one WRITE after the other, its later
// opens for writing are sent without the request. A server may decline it (3.3.5.9.6, 3.3.5.9.10), so the
// client sees a plain handle, which ends with its connection.
#pragma once
#include <optional>

#include "proxy/config/features.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

class FarDurability {
 public:
  explicit FarDurability(Connection& connection) : connection_(connection) {}

  // A client's request that may be touched; book-keeping is done.
  void on_request(const Message& message);

  // Whether this CREATE, about to be sent, is to go without the request for a durable handle. Never where the
  // client takes up a handle again, or asks for one that outlives the server (persistent).
  bool trades(const Message& message, const config::Features& features) const;

  // A smaller WRITE counts as much as one of kLeastBytes: what each has cost is a round trip.
  static constexpr std::uint64_t kTradedAfterBytes = 1 << 20, kLeastBytes = 64 << 10;

 private:
  Connection& connection_;
  std::uint64_t written_bytes_ = 0;  // that only durability kept from being promised
  std::optional<MessageId> last_;
};

// The same CREATE without its contexts that ask for durability.
Slice without_durability(const Message& create);

}  // namespace longhaul::smb::smb2
