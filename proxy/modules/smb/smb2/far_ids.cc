// SPDX-License-Identifier: Apache-2.0
// The ids of messages to the server: the client's requests and ours, and the client's ids in the answers.
// message_ids.h has the available ids.
#include "proxy/modules/smb/smb2/far.h"

#include <algorithm>

namespace longhaul::smb::smb2 {
namespace {

// Ids that stay free for the client when we use some at the top of the server's window. A request with an id
// that we used gets another one; but from 3.0 on some are signed in every session and cannot be changed.
constexpr std::uint64_t kKeptForSigned = 16;

// NEGOTIATE and SESSION_SETUP are part of the hash of 3.1.1 (3.2.5.2), but not if the session has its keys,
// which the leg's marks show: logging in again leaves them as they are (3.3.5.5.2). TREE_CONNECT and LOGOFF
// may be signed alone, which our own signatures replace.
bool must_stay(const Header& header, bool is_sealed) {
  const bool has_keys = is_sealed && header.arrival != 0;
  return header.is_signed() || header.command == Command::negotiate ||
         (!has_keys && header.command == Command::session_setup) ||
         (!is_sealed && (header.command == Command::tree_connect || header.command == Command::logoff));
}

}  // namespace

// ---- the client's requests

void Far::send(TimePoint now, const Message& message) {
  if (message.single() && message.header().command == Command::cancel) return cancel(message);
  if (listings_.holds(message)) return;
  Outgoing outgoing{message, {}};
  if (waiting_.empty() && try_send(outgoing) == Sent::yes) return;
  wait(std::move(outgoing));
  burn(now);
}

void Far::wait(Outgoing outgoing) {
  queued_bytes_ += outgoing.message.frame.bytes.size();
  ++waiting_ids_[outgoing.message.header().message_id];
  outgoing.message = kept(outgoing.message);
  waiting_.push_back(std::move(outgoing));
}

// 3.3.5.16: it names its target, which may have another id at the server, or never have arrived there; then
// there is nothing to cancel, and the id may belong to another request.
void Far::cancel(const Message& message) {
  const Header& header = message.header();
  if (header.is_async()) return out_.to_lan(message.frame.bytes);
  if (!at_server_.contains(header.message_id)) return wait_behind(message);
  MessageId id = ids_.sent_as(header.message_id);
  if (id == header.message_id) return out_.to_lan(message.frame.bytes);
  EditedFrame edited(message.frame.bytes);
  edited.set_message_id(id);
  out_.to_lan(std::move(edited).whole());
}

// Its target may be waiting for an id; any other unknown one was answered, or never came.
void Far::wait_behind(const Message& cancel) {
  if (waiting_ids_.contains(cancel.header().message_id)) wait({cancel, {}});
}

Far::Sent Far::try_send(Outgoing& outgoing) {
  const Message& message = outgoing.message;
  if (message.single() && message.header().command == Command::cancel) {
    cancel(message);
    return Sent::yes;
  }
  bool fixed = connection_.sessions().ids_are_fixed();
  for (const Element& element : message.elements)
    fixed = fixed || must_stay(element.header, connection_.sessions().is_sealed());
  for (std::size_t i = outgoing.ids.size(); i < message.elements.size(); ++i) {
    const Header& header = message.elements[i].header;
    if (header.command == Command::cancel) {
      outgoing.ids.push_back(header.message_id);
      continue;
    }
    auto forwarded = ids_.forward(header.message_id, header.charge(),
                                  fixed ? MessageIds::Renumber::forbidden : MessageIds::Renumber::allowed);
    if (forwarded.refusal == MessageIds::Refusal::wait) {
      // Before any request was added, the server decides what is out of range.
      if (touched_) return Sent::waits;
    } else if (forwarded.refusal == MessageIds::Refusal::impossible && touched_ &&
               header.command != Command::negotiate) {
      // It is signed and its id was used by us, or the client has used one twice. The near half has promised
      // nothing behind it.
      doomed_ = true;
      return Sent::yes;
    }
    outgoing.ids.push_back(forwarded.id);
  }

  const bool for_oplock = !fixed && !connection_.sessions().any_untouchable() &&
                          oplocks_.ask_for(message, surroundings_.features);
  const Slice bytes = for_oplock ? oplocks_.without_durability(message) : message.frame.bytes;
  std::optional<EditedFrame> edited;
  auto edit = [&]() -> EditedFrame& {
    if (!edited) edited.emplace(bytes);
    return *edited;
  };
  for (std::size_t i = 0; i < message.elements.size(); ++i) {
    const Element& element = message.elements[i];
    if (element.header.command != Command::cancel) at_server_.insert(element.header.message_id);
    if (outgoing.ids[i] != element.header.message_id) edit().set_message_id(outgoing.ids[i], element.offset);
  }
  if (for_oplock) edit().set_requested_oplock(OplockLevel::batch, message.first().offset);
  if (!edited) {
    out_.to_lan(bytes);
    return Sent::yes;
  }
  EditedFrame::Parts parts = std::move(*edited).take();
  out_.to_lan(std::move(parts.front));
  if (!parts.back.empty()) out_.to_lan(std::move(parts.back));
  return Sent::yes;
}

// ---- the server's answers

Message Far::in_clients_numbers(Message message) {
  std::optional<EditedFrame> edited;
  for (const Element& element : message.elements) {
    const Header& header = element.header;
    if (header.is_unsolicited()) continue;
    MessageId id = ids_.client_id(header.message_id);
    if (!header.is_interim()) {
      at_server_.erase(id);
      pended_.erase(id);
      ids_.finished(header.message_id);
    } else if (at_server_.contains(id)) {
      pended_.insert(id);
    }
    if (id == header.message_id) continue;
    if (!edited) edited.emplace(message.frame.bytes);
    edited->set_message_id(id, element.offset);
  }
  if (!edited) return message;
  Frame frame{message.frame.kind, std::move(*edited).whole()};
  auto again = parse_message(frame);
  return again ? std::move(*again) : message;  // it was parsed a moment ago
}

// ---- requests of our own

std::uint64_t Far::kept_for_client() const {
  return connection_.negotiated().dialect() >= Dialect::smb_3_0 ? kKeptForSigned : 0;
}

// Servers grant no more ids while the client's lowest is unused and too far behind the highest (smbd: 8,192).
// If the client waits for a request of ours meanwhile, nothing would ever use that. A server leaves at least
// one id (3.3.1.2), possibly among those that are kept.
std::uint64_t Far::kept_from_awaited() const { return may_free_ids() ? kept_for_client() : 0; }

bool Far::may_free_ids() const {
  return own_.size() > beginning_.size() || at_server_.size() > pended_.size();
}

bool Far::can_inject(std::uint16_t charge) const {
  return !connection_.sessions().any_untouchable() && !opaque_ && !stream_ended_ && waiting_.empty() &&
         ids_.can_take(charge, kept_for_client());
}

bool Far::inject(TimePoint, SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
                 Reply reply) {
  if (connection_.sessions().any_untouchable()) return false;
  return add(session, tree, charge, build, std::move(reply), kept_for_client()).has_value();
}

bool Far::inject_awaited(TimePoint, SessionId session, TreeId tree, const Build& build, Reply reply) {
  if (connection_.sessions().any_untouchable()) return false;
  return add(session, tree, 1, build, std::move(reply), kept_from_awaited()).has_value();
}

bool Far::listen(TimePoint, SessionId session, TreeId tree, const Build& build, Begun begun, Reply reply) {
  if (connection_.sessions().any_untouchable()) return false;
  const auto id = add(session, tree, 1, build, std::move(reply), kept_from_awaited());
  if (id) beginning_.emplace(*id, std::move(begun));
  return id.has_value();
}

bool Far::inject_owed(TimePoint, SessionId session, TreeId tree, const Build& build) {
  return owe(session, tree, build, kept_for_client());
}

bool Far::acknowledge(TimePoint, SessionId session, TreeId tree, const Build& build) {
  return owe(session, tree, build, 0);
}

bool Far::owe(SessionId session, TreeId tree, const Build& build, std::uint64_t keep) {
  if (connection_.sessions().ids_are_fixed() || connection_.sessions().expired(session)) return false;
  const auto ignore = [](TimePoint, const Frame&, const Element&) {};
  return add(session, tree, 1, build, ignore, keep).has_value();
}

std::optional<MessageId> Far::add(SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
                                  Reply reply, std::uint64_t keep) {
  if (opaque_ || end_told_) return std::nullopt;
  auto id = ids_.take(charge, keep);
  if (!id) return std::nullopt;
  touched_ = true;
  RequestHead head{.message_id = *id, .tree_id = tree, .session_id = session};
  head.credit_charge = connection_.negotiated().multi_credit() ? charge : std::uint16_t{0};
  head.credit_request = charge;
  head.credit_wish = ids_.credits_to_ask(charge);
  out_.to_lan(build(head));
  own_.emplace(*id, std::move(reply));
  ++counters_.injected;
  return id;
}

void Far::ids_freed(TimePoint now) {
  aliases_.on_ids_freed(now);
  while (!waiting_.empty() && try_send(waiting_.front()) == Sent::yes) {
    const Message& sent = waiting_.front().message;
    queued_bytes_ -= sent.frame.bytes.size();
    const auto id = waiting_ids_.find(sent.header().message_id);
    if (--id->second == 0) waiting_ids_.erase(id);
    waiting_.pop_front();
  }
  burn(now);
  if (waiting_.empty())
    for (FarPart* part : parts_) part->on_ids_freed(now);
}

// The number of ids missing for the request that waits longest.
std::uint16_t Far::lacking() const {
  if (waiting_.empty()) return 0;
  std::uint64_t end = 0, charge = 0;
  for (const Element& element : waiting_.front().message.elements) {
    charge += element.header.charge();
    end = std::max(end, element.header.message_id + element.header.charge());
  }
  return ids_.lacking(end, charge);
}

// One at a time: unused ids are returned to the server's window.
void Far::burn(TimePoint) {
  if (burning_ || connection_.sessions().ids_are_fixed() || opaque_ || end_told_) return;
  auto burnt =
      ids_.burn(!waiting_.empty(), connection_.negotiated().multi_credit() ? MessageIds::kMostBurnCharge : 1);
  if (!burnt) return;
  burning_ = true;
  RequestHead head{.message_id = burnt->id, .credit_charge = burnt->charge};
  if (!connection_.negotiated().multi_credit()) head.credit_charge = 0;
  head.credit_request = static_cast<std::uint16_t>(burnt->charge + lacking());
  out_.to_lan(build_echo_request(head));
  own_.emplace(burnt->id, [this](TimePoint then, const Frame&, const Element&) {
    burning_ = false;
    burn(then);
  });
  ++counters_.injected;
}

}  // namespace longhaul::smb::smb2
