// SPDX-License-Identifier: Apache-2.0
// See near_channels.h.
#include "proxy/modules/smb/smb2/near_channels.h"

namespace longhaul::smb::smb2 {

void Channels::remove(const Key& key, NearChannels& channel) {
  const auto found = channels_.find(key);
  if (found == channels_.end()) return;
  found->second.erase(&channel);
  if (found->second.empty()) channels_.erase(found);
}

bool Channels::bound(const Key& key, const NearChannels& by) {
  const auto found = channels_.find(key);
  if (found == channels_.end()) return true;
  bool clear = true;
  for (NearChannels* channel : found->second)
    if (channel != &by) clear &= channel->bound_elsewhere(key.session);
  return clear;
}

NearChannels::~NearChannels() {
  for (const Channels::Key& key : carried_) channels_->remove(key, *this);
}

void NearChannels::before_request(TimePoint, const Message& message, const Changes&) {
  for (const Element& element : message.elements) {
    if (element.header.command == Command::negotiate) {
      if (const auto request = parse_negotiate_request(element.bytes)) client_ = request->client_guid;
    }
    if (asks_for_interfaces(element)) others_.erase(element.header.session_id);
    if (element.header.command != Command::session_setup) continue;
    const auto setup = parse_session_setup_request(element.bytes);
    if (!setup || !setup->binding) continue;
    // A FLUSH on this connection would not wait for the other's promises. The client continues without this
    // connection, and may retry.
    if (!channels_->bound({client_, element.header.session_id}, *this)) side_.out().abort();
  }
}

void NearChannels::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (!each.element || each.element->header.status != Status::success) continue;
    if (each.request.command == Command::session_setup) {
      const Channels::Key key{client_, each.element->header.session_id};
      if (carried_.insert(key).second) channels_->add(key, *this);
    } else if (each.request.command == Command::logoff) {
      const Channels::Key key{client_, each.request.session};
      if (carried_.erase(key) != 0) channels_->remove(key, *this);
    }
  }
}

Taken NearChannels::on_twin(TimePoint, const TwinMessage& message, const Slice&) {
  const auto* paths = std::get_if<Paths>(&message);
  if (!paths) return Taken::no;
  if (others_.size() < Connection::kMostSessions || others_.contains(paths->session))
    others_.insert_or_assign(paths->session, paths->others);
  return Taken::yes;
}

std::optional<bool> NearChannels::may_be_bypassed(SessionId session) const {
  if (!side_.connection().negotiated().multi_channel()) return false;
  const auto told = others_.find(session);
  return told == others_.end() ? std::nullopt : std::optional(told->second);
}

bool NearChannels::bound_elsewhere(SessionId session) {
  side_.connection().sessions().bound_elsewhere(session);
  return !side_.has_promised();
}

}  // namespace longhaul::smb::smb2
