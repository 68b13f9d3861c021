// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/near.h"

#include "proxy/modules/smb/smb2/plain_open.h"

namespace longhaul::smb::smb2 {

using modules::Ending;
using modules::Reason;

Near::Near(Outputs& out, std::shared_ptr<AheadAccount> account, std::shared_ptr<LostWrites> lost,
           std::shared_ptr<Channels> channels, const LostWrites::Ends& ends)
    : out_(out),
      channels_(*this, std::move(channels)),
      opens_(*this, account),
      aliases_(*this),
      volumes_(*this),
      metadata_(*this),
      listings_(*this),
      settled_(*this, lost),
      writes_(*this, lost, ends),
      reads_(*this, std::move(account)),
      losses_(*this, lost, ends, writes_.files()),
      gate_(*lost, writes_.ledger()),
      asked_in_order_{&settled_, &channels_, &aliases_,  &opens_, &volumes_,
                      &writes_,  &metadata_, &listings_, &reads_},
      answered_in_order_{&settled_, &channels_, &aliases_,  &opens_, &volumes_,
                         &writes_,  &metadata_, &listings_, &reads_} {}

// ---- frames

void Near::frame_from_lan(TimePoint now, const Frame& frame) {
  losses_.client_goes_on();
  take_frame(now, frame);
}

// The frame has just arrived, or has waited at the gate since before the following responses.
void Near::take_frame(TimePoint now, const Frame& frame) {
  if (!gate_.is_shut()) return request(now, frame);
  gate_.hold(frame);
  review_gate(now);
}

// Promises of other connections: this one's promises always precede its own requests.
bool Near::must_wait(TimePoint now, const Message& message) {
  for (const GoesOn& each : losses_.gone_on_with(message))
    if (gate_.shuts_for(now, each.file, each.reach)) return true;
  return false;
}

void Near::review_gate(TimePoint now) {
  for (const Frame& frame : gate_.poll_open(now)) take_frame(now, frame);
}

void Near::request(TimePoint now, const Frame& frame) {
  watch_contact(now, surroundings_.contact);
  auto message = connection_.parse(frame);
  if (message && must_wait(now, *message)) return gate_.hold(frame);
  if (!message) {
    if (!aliases_.empty()) out_.abort();  // the frame may name one
    losses_.goes_unread();
    return out_.pass_on(frame.bytes);
  }
  if (!aliases_.empty()) message = aliases_.resolved(now, std::move(*message));
  Changes changes = connection_.on_request(*message);
  if (aliases_.close(now, *message) == Taken::yes) return;
  for (NearPart* part : asked_in_order_) part->before_request(now, *message, changes);
  give_up_same_name(now, *message);
  const bool is_touchable = !connection_.sessions().any_untouchable();
  // After the response of a CREATE the far half may add requests of its own.
  if (is_touchable) used_ = used_ || message->header().command == Command::create || !message->single();
  // Even if nothing else is answered any more: a client that is not informed here continues here.
  if (losses_.refuses(now, *message)) return;
  if (is_touchable) {
    for (NearPart* part : asked_in_order_)
      if (part->on_request(now, *message, changes) == Taken::yes) return;
  }
  out_.pass_on(message->frame.bytes);
}

void Near::frame_from_stream(TimePoint now, const Frame& frame) {
  if (auto message = connection_.parse(frame)) {
    Connection::Outcome outcome = connection_.on_response(*message);
    effects(now, outcome);
    for (NearPart* part : answered_in_order_)
      if (part->on_response(now, *message, outcome) == Taken::yes) return settle(now);
  }
  out_.to_lan(frame.bytes);
  settle(now);
}

void Near::effects(TimePoint now, const Connection::Outcome& outcome) {
  for (NearPart* part : answered_in_order_) part->on_outcome(now, outcome);
  losses_.on_outcome(outcome);
}

void Near::from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  used_ = true;
  again(now, message, attached);
  settle(now);
}

void Near::again(TimePoint now, const TwinMessage& message, const Slice& attached) {
  if (auto* held = std::get_if<Held>(&message)) {
    if (Open* open = connection_.open(held->open)) {
      open->on_behalf = true;
      open->oplock = static_cast<OplockLevel>(held->level);
      open->caching = caching_of(open->oplock);
      open->was_write_cached |= (open->caching & lease_state::write) != 0;
    }
  } else if (auto* taken_back = std::get_if<Break>(&message)) {
    ++counters_.breaks;
    if (Open* open = connection_.open(taken_back->open)) {
      open->break_pending = caching_of(open->oplock) & lease_state::write;
      open->oplock = static_cast<OplockLevel>(taken_back->level);
      open->caching = lease_state::none;  // as in Open::broken()
    }
  }
  if (const auto* watched = std::get_if<Watched>(&message)) {
    if (Open* open = connection_.open(watched->open)) {
      if (open->watched) open->doubted();
      open->watched = watched->watched;
    }
  }
  for (NearPart* part : answered_in_order_)
    if (part->on_twin(now, message, attached) == Taken::yes) break;
  if (const auto* held = std::get_if<Held>(&message); held && contact_.is_apart())
    stop_answering_by(now, held->open);
}

void Near::answer(TimePoint now, MessageId id, Slice frame, Told told) {
  used_ = true;
  const Pending* request = connection_.pending(id);
  if (told == Told::no && request) out_.tell(Local{number_of(id), request->charge});
  out_.to_lan(std::move(frame));
  if (told != Told::by_server) ++counters_.round_trips_saved;
  effects(now, connection_.answered_here(id));
}

void Near::answer_create(TimePoint now, const Message& request, Slice answer,
                         const std::vector<Slice>& questions) {
  const auto message = parse_message({FrameKind::smb2, answer});
  if (!message) return out_.abort();  // built by our twin
  metadata_.opened_ahead(request, questions);
  out_.tell(Local{number_of(request.header().message_id), request.header().charge()});
  ++counters_.round_trips_saved;
  effects(now, connection_.on_response(*message));
  out_.to_lan(std::move(answer));
}

void Near::answer_compound(TimePoint now, const Message& request, Slice answer) {
  used_ = true;
  for (const Element& element : request.elements)
    out_.tell(Local{number_of(element.header.message_id), element.header.charge()});
  out_.to_lan(std::move(answer));
  ++counters_.round_trips_saved;
  for (const Element& element : request.elements)
    effects(now, connection_.answered_here(element.header.message_id));
}

void Near::pass_on(TimePoint, const Message& message) { out_.pass_on(message.frame.bytes); }

// ---- ends

void Near::lan_ended(TimePoint now, Ending ending) {
  for (NearPart* part : asked_in_order_) part->lan_ended(now);
  if (ending == Ending::closed) {
    losses_.client_goes_on();
    return out_.end_stream();
  }
  reset_ = true;
  settle(now);
}

// The server sends no more responses: promises that are not known to be kept are lost.
void Near::stream_ended(TimePoint, Ending ending) {
  const bool owed = owes();
  writes_.lose(Cause::server_gone);
  if (ending == Ending::reset || owed) return out_.abort();
  out_.end_lan();
}

void Near::twin_lost() { writes_.lose(Cause::link_lost); }

void Near::lan_opaque(TimePoint now) {
  // Aliases can no longer be answered, held requests would follow bytes that pass from now on, and a client
  // that is not parsed is not informed of losses, or imminent losses, of its promises here and elsewhere.
  const bool may_lose = losses_.any();
  losses_.goes_unread();
  losses_.goes_unguarded();
  if (!aliases_.empty() || gate_.is_shut() || may_lose) out_.abort();
  for (NearPart* part : asked_in_order_) part->lan_ended(now);
}

Near::Leave Near::gives_up() {
  writes_.stop();
  if (!writes_.quiet() || gate_.is_shut()) return Leave::later;
  if (losses_.has_records()) return Leave::never;
  return losses_.any() ? Leave::later : Leave::now;
}

// The server's bytes pass unchanged from now on: none of ours may be between them. Promises and waiting
// requests can no longer be settled.
void Near::stream_opaque(TimePoint) {
  connection_.sessions().leave_alone(reasons::smb_not_understood);
  if (!quiet()) out_.abort();
}

// The end of the client is passed to the server when its promises are settled, successfully or not: the
// client can be informed of a loss only by opening the file again.
void Near::settle(TimePoint) {
  if (writes_.has_promised() || !(writes_.is_doomed() || (reset_ && !others_owe()))) return;
  reset_ = false;
  writes_.lose(Cause::client_gone);
  out_.abort();
}

bool Near::others_owe() const {
  for (const NearPart* part : asked_in_order_)
    if (part != &reads_ && part != &writes_ && !part->quiet()) return true;
  return false;
}

bool Near::owes() const { return !writes_.quiet() || others_owe(); }

bool Near::quiet() const { return !owes() && reads_.quiet() && !gate_.is_shut(); }

// Only if no request has been added or answered: otherwise the ids of both connections differ, and must be
// mapped. A signed or encrypted connection stays: a reset reports what its client has lost elsewhere, and if
// the connection were not parsed, nothing could be promised elsewhere.
Reason Near::leave_alone() const {
  const bool untouched = !used_ && connection_.opens().empty() && quiet();
  const Reason why = connection_.sessions().why_untouchable();
  return why == reasons::smb_not_understood && untouched && !losses_.any() ? why : reasons::optimised;
}

// ---- surroundings and time

// Before the far half returns oplocks, this half must have stopped using them for responses, and data read
// under them is void.
void Near::watch_contact(TimePoint now, const link::Contact& contact) {
  const ContactWatch::Finding finding = contact_.look(now, contact, surroundings_);
  opens_.offer_nothing(!contact_.is_in_contact());
  if (finding == ContactWatch::Finding::nothing_new) return;
  volumes_.unheard();
  opens_.give_up_all();
  if (finding == ContactWatch::Finding::doubts) {
    std::vector<OpenKey> told;
    for (const auto& [file, open] : connection_.opens())
      if (open->on_behalf || open->watched) told.push_back(open->key);
    for (const OpenKey& key : told) doubt(key);
    return;
  }
  std::vector<OpenKey> held;
  for (const auto& [file, open] : connection_.opens())
    if (open->on_behalf) held.push_back(open->key);
  for (const OpenKey& key : held) stop_answering_by(now, key);
}

// Another open of a file breaks the oplock that is held for the first: returning it in advance saves the
// round trip of the server's break. The far half checks opens beyond those examined here.
void Near::give_up_same_name(TimePoint now, const Message& message) {
  constexpr std::size_t kMostLookedAt = 1024;
  if (connection_.opens().size() > kMostLookedAt) return;
  for (const Element& element : message.elements) {
    if (element.header.command != Command::create) continue;
    const Pending* request = connection_.pending(element.header.message_id);
    if (!request || !request->opening || only_looks(*request->opening)) continue;
    const Open& opening = *request->opening;
    if (!opening.group || opening.group->count(&FileCounts::opens) == 0) continue;
    std::vector<OpenKey> held;
    for (const auto& [file, open] : connection_.opens())
      if (open->on_behalf && open->oplock != OplockLevel::none && open->name == opening.name)
        held.push_back(open->key);
    for (const OpenKey& key : held) stop_answering_by(now, key);
  }
}

// The far half's reports of others' changes do not arrive: its information about the open is void. Data that
// it reads after it was informed of that has another stamp.
void Near::doubt(const OpenKey& key) {
  const Open* open = connection_.open(key);
  if (!open) return;
  open->doubted();
  reads_.drop(*open);
}

// As if the server had broken it. Data that the far half reads under it from now on has another stamp, and
// may be used again once both halves are in contact.
void Near::stop_answering_by(TimePoint now, const OpenKey& key) {
  const Open* open = connection_.open(key);
  if (!open || !open->on_behalf) return;
  if (open->oplock == OplockLevel::none) return reads_.drop(*open);
  again(now, Break{.open = key, .level = static_cast<std::uint8_t>(OplockLevel::none)}, {});
}

void Near::on_surroundings(TimePoint now, const Surroundings& surroundings) {
  watch_contact(now, surroundings.contact);
  surroundings_ = surroundings;
  for (NearPart* part : asked_in_order_) part->on_surroundings(now, surroundings);
}

void Near::on_timeout(TimePoint now) {
  review_gate(now);
  for (NearPart* part : asked_in_order_) part->on_timeout(now);
  settle(now);
}

std::optional<TimePoint> Near::next_timeout() const {
  std::optional<TimePoint> first = gate_.next_timeout();
  for (const NearPart* part : asked_in_order_)
    if (auto at = part->next_timeout(); at && (!first || *at < *first)) first = at;
  return first;
}

}  // namespace longhaul::smb::smb2
