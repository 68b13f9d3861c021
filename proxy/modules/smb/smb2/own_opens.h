// SPDX-License-Identifier: Apache-2.0
// Our own CREATEs and CLOSEs that the connection tracks like a client's: sends them, and tracks them and
// their responses under numbers far beyond those of any client.
#pragma once
#include <functional>
#include <optional>

#include "proxy/modules/smb/smb2/parts.h"
#include "proxy/modules/smb/smb2/server_leg.h"

namespace longhaul::smb::smb2 {

class OwnOpens {
 public:
  using Build = OwnRequests::Build;
  using OpenReply = FarSide::OpenReply;
  // The connection has processed the response, with our number; the function calls `reply`.
  using Answered = std::function<void(TimePoint now, const Message& answer,
                                      const Connection::Outcome& outcome, const OpenReply& reply)>;
  OwnOpens(Connection& connection, ServerLeg& leg, Answered answered)
      : connection_(connection), leg_(leg), answered_(std::move(answered)) {}

  // Returns its number, or nullopt if no ids are free, or if the connection must pass unchanged.
  std::optional<MessageId> create(SessionId session, TreeId tree, const Build& build, OpenReply reply);
  bool close(SessionId session, TreeId tree, const Build& build, OpenReply reply);

 private:
  std::optional<Message> numbered(SessionId session, TreeId tree, const Build& build);
  OwnRequests::Reply tracked(MessageId number, OpenReply reply);

  static constexpr MessageId kFirst{1ull << 63};

  Connection& connection_;
  ServerLeg& leg_;
  Answered answered_;
  MessageId next_ = kFirst;
};

}  // namespace longhaul::smb::smb2
