// SPDX-License-Identifier: Apache-2.0
// The far half's part for multichannel: whether a client could bind a connection to its session that bypasses
// the pair of proxies. If both sides support that, it queries the server's addresses ([MS-SMB2] 3.3.5.15.11)
// before the first WRITE is promised; the near half acts on the result (near_channels.h).
//
// The query is sent after the first open that could be written early, and not before: by then it is known
// that the session is not signed, so our request does not collide with a signed one of the client.
#pragma once
#include <unordered_map>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

// 2.2.32.5: whether a client could reach the server by an address other than `known`. Loopback and link-local
// addresses cannot be reached from another network.
Result<bool> lists_other_addresses(Bytes network_interfaces, const modules::Address& known);

class FarPaths final : public FarPart {
 public:
  FarPaths(FarSide& side, const modules::Address& server) : side_(side), server_(server) {}

  // Returns false also if it is unknown: then it is queried, and FarSide::path_is_known() follows.
  bool has_only_path(const Open& open);

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  // To be called before the response is passed on: the near half promises nothing more when the client learns
  // other addresses.
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_request(TimePoint, const Message&, const Changes&) override { return Taken::no; }
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  Taken on_twin(TimePoint, const TwinMessage&, const Slice&) override { return Taken::no; }

 private:
  enum class State : std::uint8_t { unknown, asked, only_path, others };
  // Returns nullopt if the response does not show it.
  std::optional<bool> others_in(const Element& answer) const;
  void settle(SessionId session, bool others);
  void tell(SessionId session);

  FarSide& side_;
  modules::Address server_;
  std::unordered_map<SessionId, State, KeyedHash> sessions_;
  KeyedSet<MessageId> questions_;  // queries of the client
};

}  // namespace longhaul::smb::smb2
