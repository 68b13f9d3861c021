// SPDX-License-Identifier: Apache-2.0
// What happens to messages, and ends. far_ids.cc assigns the ids with which they, and our own requests, go to
// the server.
#include "proxy/modules/smb/smb2/far.h"

#include <algorithm>

namespace longhaul::smb::smb2 {

using modules::Ending;
using modules::Reason;

namespace {

// The numbers under which the connection tracks opens and closes of our own; far beyond those of any client.
constexpr MessageId kFirstOwnOpen = MessageId{1} << 63;

}  // namespace

Far::Far(Outputs& out, std::shared_ptr<LostWrites> lost, const LostWrites::Ends& ends)
    : out_(out),
      aliases_(*this),
      oplocks_(connection_),
      losses_(*this, std::move(lost), ends),
      paths_(*this, ends.server),
      opens_(*this),
      order_(*this),
      watch_(*this),
      volumes_(*this),
      metadata_(*this),
      listings_(*this),
      reads_(*this),
      parts_{&losses_, &paths_, &opens_, &volumes_, &order_, &watch_, &metadata_, &listings_, &reads_},
      next_own_open_(kFirstOwnOpen) {}

// ---- the client's requests

void Far::frame_from_stream(TimePoint now, const Frame& frame) {
  if (holds(frame)) return;
  auto message = connection_.parse(frame);
  if (!message) {
    const bool is_told = !is_session_packet(frame.kind) && losses_.is_told_unread();
    return is_told ? out_.abort() : out_.to_lan(frame.bytes);
  }
  if (ids_.is_scattered()) return out_.abort();
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
  return queued_bytes_ + held_bytes_ + order_.held_bytes() + listings_.held_bytes() + aliases_.held_bytes() +
         reads_.held_bytes();
}

std::size_t Far::bytes_of(const Input& input) {
  if (const auto* frame = std::get_if<Frame>(&input)) return frame->bytes.size();
  if (const auto* told = std::get_if<1>(&input)) return sizeof(TwinMessage) + told->second.size();
  return 0;
}

bool Far::holds(Input input) {
  if (!aliases_.busy() && held_.empty()) return false;
  held_bytes_ += bytes_of(input);
  held_.push_back(std::move(input));
  return true;
}

void Far::release(TimePoint now) {
  // Waiting would never end: the server has left none (against 3.3.1.2).
  if (aliases_.starved() && !may_free_ids()) return out_.abort();
  if (held_.empty() || aliases_.busy()) return;
  std::deque<Input> held = std::exchange(held_, {});
  while (!held.empty() && held_.empty()) {
    Input input = std::move(held.front());
    held.pop_front();
    held_bytes_ -= bytes_of(input);
    if (auto* frame = std::get_if<Frame>(&input)) frame_from_stream(now, *frame);
    if (auto* told = std::get_if<1>(&input)) from_twin(now, told->first, told->second);
    if (auto* ending = std::get_if<Ending>(&input)) stream_ended(now, *ending);
    if (const auto* opaque = std::get_if<Opaque>(&input)) go_opaque(now, *opaque);
    // Others must be opened at the server first: the rest waits again, in order.
    if (aliases_.busy()) held_ = std::exchange(held, {});
  }
}

// ---- the server's answers

void Far::frame_from_lan(TimePoint now, const Frame& frame) {
  auto parsed = connection_.parse(frame);
  if (!parsed) return out_.pass_on(frame.bytes);
  for (const Element& element : parsed->elements)
    if (!element.header.is_unsolicited()) ids_.granted(element.header.credits);
  if (ids_.is_scattered()) return out_.abort();
  if (own_answer(now, *parsed)) {
    ids_freed(now);
    release(now);
    return settle(now);
  }

  Message message = in_clients_numbers(std::move(*parsed));
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

bool Far::own_answer(TimePoint now, const Message& message) {
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
      listening_.insert(std::move(waited));  // once more
    }
    return true;
  }
  beginning_.erase(id);
  Reply reply = std::move(waited.empty() ? found->second : waited.mapped());
  if (waited.empty()) own_.erase(found);
  reply(now, message.frame, message.first());
  return true;
}

// ---- opens of our own

bool Far::inject_open(TimePoint now, SessionId session, TreeId tree, const Build& build,
                      const std::vector<Slice>& questions, OpenReply reply) {
  const auto request = own_open(session, tree, build);
  if (!request) return false;  // our own making
  const MessageId own = request->header().message_id;
  if (!inject(now, session, tree, 1, build, tracked(own, std::move(reply)))) return false;
  connection_.on_request(*request);
  for (const Slice& question : questions) {
    metadata_.on_twin(
        now,
        Expect{
            .message = own, .command = static_cast<std::uint16_t>(Command::query_info), .request = question},
        {});
  }
  return true;
}

bool Far::inject_close(TimePoint now, SessionId session, TreeId tree, const Build& build, OpenReply reply) {
  const auto request = own_open(session, tree, build);
  if (!request) return false;  // our own making
  const MessageId own = request->header().message_id;
  if (!inject_awaited(now, session, tree, build, tracked(own, std::move(reply)))) return false;
  connection_.on_request(*request);
  return true;
}

std::optional<Message> Far::own_open(SessionId session, TreeId tree, const Build& build) {
  const Slice frame = build({.message_id = next_own_open_++, .tree_id = tree, .session_id = session});
  auto request = parse_message({FrameKind::smb2, frame});
  if (!request) return std::nullopt;
  return std::move(*request);
}

FarSide::Reply Far::tracked(MessageId own, OpenReply reply) {
  return [this, own, reply = std::move(reply)](TimePoint then, const Frame& answered, const Element&) {
    EditedFrame edited(answered.bytes);
    edited.set_message_id(own);
    const auto message = parse_message({FrameKind::smb2, std::move(edited).whole()});
    if (!message) return;  // it was parsed a moment ago
    const Connection::Outcome outcome = connection_.on_response(*message);
    for (FarPart* part : parts_) part->on_outcome(then, outcome);
    reply(then, *message, outcome);
    after_response(then, outcome);
  };
}

void Far::answer(TimePoint now, const Header& request, Slice frame) {
  const MessageId id = request.message_id;
  touched_ = true;
  ids_.bank(id, request.charge());
  const auto message = parse_message({FrameKind::smb2, frame});
  if (!message) return out_.abort();  // our own making
  Connection::Outcome outcome = connection_.answered_here(id);
  for (Connection::Answered& each : outcome.answered) each.element = &message->first();
  for (FarPart* part : parts_) part->on_outcome(now, outcome);
  out_.pass_on(std::move(frame));
  after_response(now, outcome);
  ids_freed(now);
}

// The client's requests go before those that it did not send.
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
    aliases_.make_real(now, *wanted);
    return release(now);
  }
  if (holds(std::pair(message, attached))) return;
  auto unused = [&](MessageId id, std::uint16_t charge) {
    touched_ = true;
    ids_.bank(id, charge);
    Connection::Outcome outcome = connection_.answered_here(id);
    for (FarPart* part : parts_) part->on_outcome(now, outcome);
  };
  if (auto* used = std::get_if<Used>(&message)) unused(used->message, used->charge);
  if (auto* local = std::get_if<Local>(&message)) unused(local->message, local->charge);
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
  opaque_ = true;
  if (!opaque.of_server && losses_.is_told_unread()) return out_.abort();
  // The near half may promise until it hears of it.
  for (FarPart* part : parts_)
    if (!opaque.of_server || part != &losses_) part->stream_ended(now);
}

void Far::settle(TimePoint) {
  if (doomed_ && !order_.owes()) {
    doomed_ = false;
    out_.abort();
  }
  if (!stream_ended_ || end_told_ || !quiet()) return;
  end_told_ = true;
  if (*stream_ended_ == Ending::reset) return out_.abort();
  out_.end_lan();
}

bool Far::quiet() const {
  if (!waiting_.empty() || !held_.empty() || aliases_.busy()) return false;
  return std::all_of(parts_.begin(), parts_.end(), [](const FarPart* part) { return part->quiet(); });
}

// Only after the near half, which does so only if nothing was added or answered: from then on the ids of both
// connections differ, and must be mapped.
Reason Far::leave_alone() const {
  if (!opaque_ || stream_ended_ || !own_.empty() || !listening_.empty() || !quiet())
    return reasons::optimised;
  return connection_.sessions().any_untouchable() ? connection_.sessions().why_untouchable()
                                                  : reasons::smb_not_understood;
}

// ---- surroundings and time

void Far::on_surroundings(TimePoint now, const Surroundings& surroundings) {
  surroundings_ = surroundings;
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
