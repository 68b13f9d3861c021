// SPDX-License-Identifier: Apache-2.0
// See far.h.
#include "proxy/modules/smb/smb2/far.h"

#include <algorithm>

namespace longhaul::smb::smb2 {

using modules::Ending;
using modules::Reason;

Far::Far(Outputs& out, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
    : out_(out),
      oplocks_(connection_),
      leg_(out, connection_, oplocks_, counters_),
      own_opens_(connection_, leg_,
                 [this](TimePoint now, const Message& answer, const Connection::Outcome& outcome,
                        const OpenReply& reply) { own_answered(now, answer, outcome, reply); }),
      aliases_(*this),
      losses_(*this, std::move(lost), ends),
      paths_(*this, ends.server),
      opens_(*this),
      order_(*this),
      watch_(*this),
      volumes_(*this),
      metadata_(*this),
      listings_(*this),
      reads_(*this),
      parts_{&losses_, &paths_, &opens_, &volumes_, &order_, &watch_, &metadata_, &listings_, &reads_} {}

// ---- the client's requests

void Far::frame_from_stream(TimePoint now, const Frame& frame) {
  if (holds(frame)) return;
  auto message = connection_.parse(frame);
  if (!message) {
    const bool is_told = !is_session_packet(frame.kind) && losses_.is_told_unread();
    return is_told ? out_.abort() : out_.to_lan(frame.bytes);
  }
  if (leg_.is_scattered()) return out_.abort();
  message = aliases_.resolved(std::move(*message));
  Changes changes = connection_.on_request(*message);
  for (FarPart* part : parts_) part->before_request(now, *message, changes);
  if (reads_.answered_by_near(now, *message)) return settle(now);
  for (FarPart* part : parts_)
    if (part->on_request(now, *message, changes) == Taken::yes) return settle(now);
  send(now, *message);
  settle(now);
}

std::size_t Far::queued_bytes() const {
  return leg_.queued_bytes() + held_.bytes() + order_.held_bytes() + listings_.held_bytes() +
         aliases_.held_bytes() + reads_.held_bytes();
}

bool Far::holds(Input input) {
  if (!aliases_.busy() && held_.empty()) return false;
  held_.push(std::move(input));
  return true;
}

void Far::release(TimePoint now) {
  // Waiting would never end: the server has granted no credits (against 3.3.1.2).
  if (aliases_.starved() && !leg_.may_free_ids()) return out_.abort();
  if (held_.empty() || aliases_.busy()) return;
  HeldInputs held = std::exchange(held_, {});
  while (!held.empty() && held_.empty()) {
    Input input = held.pop();
    if (auto* frame = std::get_if<Frame>(&input)) frame_from_stream(now, *frame);
    if (auto* told = std::get_if<HeldInputs::Told>(&input)) from_twin(now, told->message, told->attached);
    if (auto* ending = std::get_if<Ending>(&input)) stream_ended(now, *ending);
    if (const auto* opaque = std::get_if<Opaque>(&input)) go_opaque(now, *opaque);
    // Others must be opened at the server first: the rest waits again, in order.
    if (aliases_.busy()) held_ = std::exchange(held, {});
  }
}

void Far::send(TimePoint, const Message& message) {
  const bool is_cancel = message.single() && message.header().command == Command::cancel;
  if (!is_cancel && listings_.holds(message)) return;
  leg_.send(message);
}

void Far::ids_freed(TimePoint now) {
  aliases_.on_ids_freed();
  if (!leg_.send_waiting()) return;
  for (FarPart* part : parts_) part->on_ids_freed(now);
}

// ---- the server's answers

void Far::frame_from_lan(TimePoint now, const Frame& frame) {
  auto parsed = connection_.parse(frame);
  if (!parsed) {
    // Requests of the client wait for the content of responses to ours.
    const auto header = parse_header(frame.message());
    return header && leg_.is_own(header->message_id) ? out_.abort() : out_.pass_on(frame.bytes);
  }
  leg_.granted(*parsed);
  if (leg_.is_scattered()) return out_.abort();
  if (leg_.answers_own(now, *parsed)) {
    ids_freed(now);
    release(now);
    return settle(now);
  }

  Message message = leg_.in_clients_numbers(std::move(*parsed));
  Connection::Outcome outcome = connection_.on_response(message);
  std::optional<Held> held = oplocks_.asked_for(outcome);
  for (FarPart* part : parts_) part->on_outcome(now, outcome);
  bool taken = false;
  for (FarPart* part : parts_)
    if (!taken) taken = part->on_response(now, message, outcome) == Taken::yes;
  for (const Change& change : outcome.changes)
    if (change.kind == Change::Kind::broken && change.open->given_up)
      (void)order_.on_twin(now, Broken{.open = change.open->key}, {});
  if (held && !taken) {
    EditedFrame edited(message.frame.bytes);
    edited.set_granted_oplock(OplockLevel::none, message.first().offset);
    out_.pass_on(std::move(edited).whole());
  } else if (!taken) {
    out_.pass_on(message.frame.bytes);
  }
  if (held && held->level != 0) out_.tell(*held);
  after_response(now, outcome);
  ids_freed(now);
  release(now);
  settle(now);
}

// ---- opens of our own

bool Far::inject_open(TimePoint now, SessionId session, TreeId tree, const Build& build,
                      const std::vector<Slice>& questions, OpenReply reply) {
  const auto own = own_opens_.create(session, tree, build, std::move(reply));
  if (!own) return false;
  for (const Slice& question : questions) {
    metadata_.on_twin(now,
                      Expect{.message = number_of(*own),
                             .command = static_cast<std::uint16_t>(Command::query_info),
                             .request = question},
                      {});
  }
  return true;
}

void Far::own_answered(TimePoint now, const Message& answer, const Connection::Outcome& outcome,
                       const OpenReply& reply) {
  for (FarPart* part : parts_) part->on_outcome(now, outcome);
  reply(now, answer, outcome);
  after_response(now, outcome);
}

void Far::answer(TimePoint now, const Header& request, Slice frame) {
  const MessageId id = request.message_id;
  leg_.bank(id, request.charge());
  const auto message = parse_message({FrameKind::smb2, frame});
  if (!message) return out_.abort();  // built here
  Connection::Outcome outcome = connection_.answered_here(id);
  for (Connection::Answered& each : outcome.answered) each.element = &message->first();
  for (FarPart* part : parts_) part->on_outcome(now, outcome);
  out_.pass_on(std::move(frame));
  after_response(now, outcome);
  ids_freed(now);
}

// The client's requests are sent before our own.
void Far::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (FarPart* part : parts_)
    if (part != &opens_) part->after_response(now, outcome);
  opens_.after_response(now, outcome);
}

void Far::on_with(TimePoint now, const Message& message) {
  for (FarPart* part : parts_)
    if (part != &opens_ && part->on_response(now, message, {}) == Taken::yes) return;
  out_.pass_on(message.frame.bytes);
}

// ---- the twin

void Far::from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  if (const auto* wanted = std::get_if<MakeReal>(&message); wanted && held_.empty()) {
    aliases_.make_real(*wanted);
    return release(now);
  }
  if (holds(HeldInputs::Told{message, attached})) return;
  auto unused = [&](MessageId id, std::uint16_t charge) {
    leg_.bank(id, charge);
    Connection::Outcome outcome = connection_.answered_here(id);
    for (FarPart* part : parts_) part->on_outcome(now, outcome);
  };
  if (auto* used = std::get_if<Used>(&message)) unused(id_of(used->message), used->charge);
  if (auto* local = std::get_if<Local>(&message)) unused(id_of(local->message), local->charge);
  // Not requested by the server: the client is about to open the file again.
  if (auto* broken = std::get_if<Broken>(&message))
    if (Open* open = connection_.open(broken->open); open && !open->break_pending) open->given_up = true;
  for (FarPart* part : parts_)
    if (part->on_twin(now, message, attached) == Taken::yes) break;
  if (std::holds_alternative<Used>(message) || std::holds_alternative<Local>(message)) ids_freed(now);
  settle(now);
}

void Far::drop(TimePoint now, const Open& open) { reads_.drop(now, open); }

// ---- ends

void Far::lan_ended(TimePoint, Ending ending) {
  losses_.server_ended();
  bool owes = std::any_of(parts_.begin(), parts_.end(), [](const FarPart* part) { return part->owes(); });
  if (ending == Ending::reset || owes) return out_.abort();
  out_.end_stream();
}

void Far::stream_ended(TimePoint now, Ending ending) {
  if (holds(ending)) return;
  if (ending == Ending::reset) end_told_ = false;
  leg_.set_client(end_told_ ? ServerLeg::Client::is_told : ServerLeg::Client::ended);
  if (ending == Ending::closed) losses_.client_ended();
  stream_ended_ = ending;
  for (FarPart* part : parts_) part->stream_ended(now);
  settle(now);
}

void Far::lan_opaque(TimePoint now) {
  losses_.server_opaque();
  go_opaque(now, {.of_server = true});
}

void Far::stream_opaque(TimePoint now) { go_opaque(now, {}); }

void Far::go_opaque(TimePoint now, Opaque opaque) {
  if (holds(opaque)) return;
  leg_.set_opaque();
  connection_.sessions().leave_alone(reasons::smb_not_understood);
  if (!opaque.of_server && losses_.is_told_unread()) return out_.abort();
  // The near half may make promises until it is informed.
  for (FarPart* part : parts_)
    if (!opaque.of_server || part != &losses_) part->stream_ended(now);
  // A request of ours that waits for ids never goes now; those of the client that wait for it do.
  for (FarPart* part : parts_) part->on_ids_freed(now);
}

void Far::settle(TimePoint) {
  if ((!order_.owes() && leg_.take_doom()) || leg_.is_stuck()) out_.abort();
  if (!stream_ended_ || end_told_ || !quiet()) return;
  end_told_ = true;
  leg_.set_client(ServerLeg::Client::is_told);
  if (*stream_ended_ == Ending::reset) return out_.abort();
  out_.end_lan();
}

bool Far::quiet() const {
  if (leg_.has_waiting() || !held_.empty() || aliases_.busy()) return false;
  return std::all_of(parts_.begin(), parts_.end(), [](const FarPart* part) { return part->quiet(); });
}

// Only after the near half, which does so only if nothing was added or answered: otherwise the ids of both
// connections differ, and must be mapped.
Reason Far::leave_alone() const {
  if (!leg_.is_opaque() || stream_ended_ || leg_.has_own() || !quiet()) return reasons::optimised;
  return connection_.sessions().why_untouchable();
}

// ---- surroundings and time

void Far::on_surroundings(TimePoint now, const Surroundings& surroundings) {
  surroundings_ = surroundings;
  leg_.set_features(surroundings.features);
  for (FarPart* part : parts_) part->on_surroundings(now, surroundings);
}

void Far::on_timeout(TimePoint now) {
  for (FarPart* part : parts_) part->on_timeout(now);
  settle(now);
}

std::optional<TimePoint> Far::next_timeout() const {
  std::optional<TimePoint> first;
  for (const FarPart* part : parts_)
    if (auto at = part->next_timeout(); at && (!first || *at < *first)) first = at;
  return first;
}

}  // namespace longhaul::smb::smb2
