// SPDX-License-Identifier: Apache-2.0
// See server_leg.h.
#include "proxy/modules/smb/smb2/server_leg.h"

#include <algorithm>

namespace longhaul::smb::smb2 {
namespace {

// Ids that stay free for the client when some at the top of the server's window are used here. A request with
// a used id gets another one; but from 3.0 on some are signed in every session and cannot be changed.
constexpr std::uint64_t kKeptForSigned = 16;

// NEGOTIATE and SESSION_SETUP are part of the hash of 3.1.1 (3.2.5.2), but not if the session has its keys,
// as shown by the leg's marks: logging in again does not change them (3.3.5.5.2). TREE_CONNECT and LOGOFF may
// be signed alone, and our own signatures replace those.
bool must_stay(const Header& header, bool is_sealed) {
  const bool has_keys = is_sealed && header.arrival != 0;
  return header.is_signed() || header.command == Command::negotiate ||
         (!has_keys && header.command == Command::session_setup) ||
         (!is_sealed && (header.command == Command::tree_connect || header.command == Command::logoff));
}

bool is_cancel(const Message& message) {
  return message.single() && message.header().command == Command::cancel;
}

}  // namespace

// ---- the client's requests

void ServerLeg::send(const Message& message) {
  if (is_cancel(message)) return cancel(message);
  Outgoing outgoing{message, {}};
  if (waiting_.empty() && try_send(outgoing) == Sent::yes) return;
  wait(std::move(outgoing));
  burn();
}

void ServerLeg::bank(MessageId id, std::uint16_t charge) {
  is_touched_ = true;
  ids_.bank(id, charge);
}

void ServerLeg::wait(Outgoing outgoing) {
  queued_bytes_ += outgoing.message.frame.bytes.size();
  ++waiting_ids_[outgoing.message.header().message_id];
  outgoing.message = kept(outgoing.message);
  waiting_.push_back(std::move(outgoing));
}

// 3.3.5.16: it names its target, which may have another id at the server, or may never have arrived there;
// then there is nothing to cancel, and the id may belong to another request.
void ServerLeg::cancel(const Message& message) {
  const Header& header = message.header();
  if (header.is_async()) return out_.to_lan(message.frame.bytes);
  if (!at_server_.contains(header.message_id)) {
    // Its target may be waiting for an id; any other unknown one was answered, or never arrived.
    if (waiting_ids_.contains(header.message_id)) wait({message, {}});
    return;
  }
  MessageId id = ids_.sent_as(header.message_id);
  if (id == header.message_id) return out_.to_lan(message.frame.bytes);
  EditedFrame edited(message.frame.bytes);
  edited.set_message_id(id);
  out_.to_lan(std::move(edited).whole());
}

ServerLeg::Sent ServerLeg::choose_ids(Outgoing& outgoing, MessageIds::Renumber renumber) {
  const Message& message = outgoing.message;
  for (std::size_t i = outgoing.ids.size(); i < message.elements.size(); ++i) {
    const Header& header = message.elements[i].header;
    if (header.command == Command::cancel) {
      outgoing.ids.push_back(header.message_id);
      continue;
    }
    const auto forwarded = ids_.forward(header.message_id, header.charge(), renumber);
    if (forwarded.refusal == MessageIds::Refusal::wait) {
      // Before any request was added, the server decides which ids are out of range.
      if (is_touched_) return Sent::waits;
    } else if (forwarded.refusal == MessageIds::Refusal::impossible && is_touched_ &&
               header.command != Command::negotiate) {
      // It is signed and its id was used here, or the client has used one twice. The near half has promised
      // nothing after it.
      is_doomed_ = true;
      return Sent::yes;
    }
    outgoing.ids.push_back(forwarded.id);
  }
  return Sent::yes;
}

ServerLeg::Sent ServerLeg::try_send(Outgoing& outgoing) {
  const Message& message = outgoing.message;
  if (is_cancel(message)) {
    cancel(message);
    return Sent::yes;
  }
  bool fixed = connection_.sessions().ids_are_fixed();
  for (const Element& element : message.elements)
    fixed = fixed || must_stay(element.header, connection_.sessions().is_sealed());
  if (choose_ids(outgoing, fixed ? MessageIds::Renumber::forbidden : MessageIds::Renumber::allowed) ==
      Sent::waits)
    return Sent::waits;
  if (outgoing.ids.size() < message.elements.size()) return Sent::yes;  // doomed

  const bool for_oplock =
      !fixed && !connection_.sessions().any_untouchable() && oplocks_.ask_for(message, features_);
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

bool ServerLeg::send_waiting() {
  while (!waiting_.empty() && try_send(waiting_.front()) == Sent::yes) {
    const Message& sent = waiting_.front().message;
    queued_bytes_ -= sent.frame.bytes.size();
    const auto id = waiting_ids_.find(sent.header().message_id);
    if (--id->second == 0) waiting_ids_.erase(id);
    waiting_.pop_front();
  }
  burn();
  return waiting_.empty();
}

// ---- the server's messages

void ServerLeg::granted(const Message& message) {
  for (const Element& element : message.elements)
    if (!element.header.is_unsolicited()) ids_.granted(element.header.credits);
}

bool ServerLeg::answers_own(TimePoint now, const Message& message) {
  const MessageId id = message.header().message_id;
  if (message.header().is_unsolicited()) return false;
  auto waited = listening_.extract(id);
  const auto found = own_.find(id);
  if (waited.empty() && found == own_.end()) return false;
  if (message.header().is_interim()) {
    if (auto begun = beginning_.extract(id); !begun.empty()) {
      listening_.emplace(id, std::move(found->second));
      own_.erase(found);
      begun.mapped()(now);
    } else if (!waited.empty()) {
      listening_.insert(std::move(waited));  // again
    }
    return true;
  }
  beginning_.erase(id);
  Reply reply = std::move(waited.empty() ? found->second : waited.mapped());
  if (waited.empty()) own_.erase(found);
  reply(now, message.frame, message.first());
  return true;
}

Message ServerLeg::in_clients_numbers(Message message) {
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
  return again ? std::move(*again) : message;  // it was parsed before
}

// ---- requests of our own

std::uint64_t ServerLeg::kept_for_client() const {
  return connection_.negotiated().dialect() >= Dialect::smb_3_0 ? kKeptForSigned : 0;
}

bool ServerLeg::can_inject(std::uint16_t charge) const {
  return !connection_.sessions().any_untouchable() && !is_opaque_ && client_ == Client::sends &&
         waiting_.empty() && ids_.can_take(charge, kept_for_client());
}

bool ServerLeg::inject(SessionId session, TreeId tree, std::uint16_t charge, const Build& build,
                       Reply reply) {
  if (connection_.sessions().any_untouchable()) return false;
  return add(session, tree, charge, build, std::move(reply), kept_for_client()).has_value();
}

bool ServerLeg::inject_awaited(SessionId session, TreeId tree, const Build& build, Reply reply) {
  if (connection_.sessions().any_untouchable()) return false;
  return add(session, tree, 1, build, std::move(reply), kept_from_awaited()).has_value();
}

bool ServerLeg::listen(SessionId session, TreeId tree, const Build& build, Begun begun, Reply reply) {
  if (connection_.sessions().any_untouchable()) return false;
  const auto id = add(session, tree, 1, build, std::move(reply), kept_from_awaited());
  if (id) beginning_.emplace(*id, std::move(begun));
  return id.has_value();
}

bool ServerLeg::inject_owed(SessionId session, TreeId tree, const Build& build) {
  return owe(session, tree, build, kept_for_client());
}

bool ServerLeg::acknowledge(SessionId session, TreeId tree, const Build& build) {
  return owe(session, tree, build, 0);
}

bool ServerLeg::owe(SessionId session, TreeId tree, const Build& build, std::uint64_t keep) {
  if (connection_.sessions().ids_are_fixed() || connection_.sessions().expired(session)) return false;
  const auto ignore = [](TimePoint, const Frame&, const Element&) {};
  return add(session, tree, 1, build, ignore, keep).has_value();
}

std::optional<MessageId> ServerLeg::add(SessionId session, TreeId tree, std::uint16_t charge,
                                        const Build& build, Reply reply, std::uint64_t keep) {
  if (is_opaque_ || client_ == Client::is_told) return std::nullopt;
  auto id = ids_.take(charge, keep);
  if (!id) return std::nullopt;
  is_touched_ = true;
  RequestHead head{.message_id = *id, .tree_id = tree, .session_id = session};
  head.credit_charge = connection_.negotiated().multi_credit() ? charge : std::uint16_t{0};
  head.credit_request = charge;
  head.credit_wish = ids_.credits_to_ask(charge);
  out_.to_lan(build(head));
  own_.emplace(*id, std::move(reply));
  ++counters_.injected;
  return id;
}

// The number of ids missing for the request that waits longest.
std::uint16_t ServerLeg::lacking() const {
  if (waiting_.empty()) return 0;
  MessageId end;
  std::uint64_t charge = 0;
  for (const Element& element : waiting_.front().message.elements) {
    charge += element.header.charge();
    end = std::max(end, element.header.message_id + element.header.charge());
  }
  return ids_.lacking(end, charge);
}

// If no ECHO can be sent, the end of a request that the server has left pending might still bring some ids.
bool ServerLeg::is_stuck() const {
  if (waiting_.empty() || may_free_ids()) return false;
  const bool may_burn = !connection_.sessions().ids_are_fixed() && ids_.free_ids() != 0;
  return ids_.hopeless() || (!may_burn && pended_.empty() && listening_.empty());
}

// One at a time: unused ids are returned to the server's window.
void ServerLeg::burn() {
  if (is_burning_ || connection_.sessions().ids_are_fixed() || is_opaque_ || client_ == Client::is_told)
    return;
  using Waits = MessageIds::Waits;
  const Waits waits = waiting_.empty() ? Waits::no : may_free_ids() ? Waits::yes : Waits::in_vain;
  auto burnt = ids_.burn(waits, connection_.negotiated().multi_credit() ? MessageIds::kMostBurnCharge : 1);
  if (!burnt) return;
  is_burning_ = true;
  RequestHead head{.message_id = burnt->id, .credit_charge = burnt->charge};
  if (!connection_.negotiated().multi_credit()) head.credit_charge = 0;
  head.credit_request = static_cast<std::uint16_t>(burnt->charge + lacking());
  out_.to_lan(build_echo_request(head));
  // The next one follows, if it is needed, when the waiting requests have got what this one brought.
  own_.emplace(burnt->id, [this](TimePoint, const Frame&, const Element&) { is_burning_ = false; });
  ++counters_.injected;
}

}  // namespace longhaul::smb::smb2
