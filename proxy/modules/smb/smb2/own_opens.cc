// SPDX-License-Identifier: Apache-2.0
// See own_opens.h.
#include "proxy/modules/smb/smb2/own_opens.h"

#include <utility>

namespace longhaul::smb::smb2 {

std::optional<MessageId> OwnOpens::create(SessionId session, TreeId tree, const Build& build,
                                          OpenReply reply) {
  const auto request = numbered(session, tree, build);
  if (!request) return std::nullopt;  // built here
  const MessageId number = request->header().message_id;
  if (!leg_.inject(session, tree, 1, build, tracked(number, std::move(reply)))) return std::nullopt;
  connection_.on_request(*request);
  return number;
}

bool OwnOpens::close(SessionId session, TreeId tree, const Build& build, OpenReply reply) {
  const auto request = numbered(session, tree, build);
  if (!request) return false;  // built here
  const MessageId number = request->header().message_id;
  if (!leg_.inject_awaited(session, tree, build, tracked(number, std::move(reply)))) return false;
  connection_.on_request(*request);
  return true;
}

std::optional<Message> OwnOpens::numbered(SessionId session, TreeId tree, const Build& build) {
  const MessageId number = next_;
  ++next_;
  const Slice frame = build({.message_id = number, .tree_id = tree, .session_id = session});
  auto request = parse_message({FrameKind::smb2, frame});
  if (!request) return std::nullopt;
  return std::move(*request);
}

OwnRequests::Reply OwnOpens::tracked(MessageId number, OpenReply reply) {
  return [this, number, reply = std::move(reply)](TimePoint now, const Frame& frame, const Element&) {
    EditedFrame edited(frame.bytes);
    edited.set_message_id(number);
    const auto answer = parse_message({FrameKind::smb2, std::move(edited).whole()});
    if (!answer) return;  // it was parsed before
    answered_(now, *answer, connection_.on_response(*answer), reply);
  };
}

}  // namespace longhaul::smb::smb2
