// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far.h"

#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/looks.h"
#include "proxy/modules/smb/status.h"

namespace longhaul::smb::smb1 {

void Far::from_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (const auto* asked = std::get_if<Asked>(&message)) asked_ = *asked;
  if (const auto* promised = std::get_if<Promised>(&message)) promised_ = *promised;
  if (const auto* expect = std::get_if<Expect>(&message)) questions_.expect(*expect);
  if (const auto* local = std::get_if<Local>(&message)) looks_.taken(*local);
  if (const auto* who = std::get_if<Remembers>(&message)) losses_.remembers(*who);
  if (const auto* settled = std::get_if<Settled>(&message)) losses_.settled(*settled);
  if (const auto* read = std::get_if<LossRead>(&message)) losses_.loss_read(*read);
  if (const auto* used = std::get_if<Used>(&message)) reads_.used(*used);
  if (const auto* allowance = std::get_if<Allowance>(&message)) reads_.may_be_ahead(allowance->bytes);
  if (const auto* more = std::get_if<More>(&message)) searches_.consumed(*more);
  if (const auto* drop = std::get_if<Drop>(&message)) {
    if (drop->open == looks_key()) looks_.near_dropped(drop->epoch);
    reads_.near_dropped(*drop);
    searches_.near_dropped(*drop);
  }
  if (const auto* broken = std::get_if<Broken>(&message)) returns_.near_gives_back(broken->open);
  (void)now;
  settle();
}

void Far::frame_from_stream(TimePoint now, const Frame& frame) {
  if (leg_.raw().data_due_from_client()) {
    leg_.send_raw_data(frame.bytes);
    return settle();
  }
  const bool is_smb1 = frame.kind == FrameKind::smb1;
  if (!is_smb1 && (is_session_packet(frame.kind) || !losses_.is_told_unread()))
    return out_.to_lan(frame.bytes);
  if (!is_smb1) return out_.abort();
  const auto message = parse_message(frame.message());
  if (!message) {
    if (losses_.is_told_unread()) return out_.abort();
    asked_.reset();
    promised_.reset();
    leg_.send(frame.bytes, {}, false, {Scope::Of::everything, {}, {}});
    return settle();
  }
  if (promised_) {
    const Promised told = *promised_;
    promised_.reset();
    promised(now, told, frame, *message);
  } else {
    request(now, frame, *message);
  }
  asked_.reset();
  settle();
}

void Far::promised(TimePoint now, const Promised& told, const Frame& frame, const Message& message) {
  if (lan_over_) return out_.abort();  // its result would be unknown
  volumes_.changed();
  ServerLeg::Promise promise{told.open, {}};
  std::uint64_t length = 0;
  if (message.header.command == Command::close) {
    reads_.closed(told.open);
    watch_.closed(now, told.open);
    if (Open* open = connection_.open(told.open)) open->closing = true;
    leg_.send_promised(frame.bytes, {Scope::Of::closing, told.open, {}}, promise,
                       [this, told](const Message& answer) {
                         if (auto closed = connection_.close(told.open)) {
                           closed->failed_promise |= answer.header.status != 0 && closed->writes != 0;
                           losses_.closed(*closed);
                         }
                         returns_.closed(told.open);
                         volumes_.changed();
                         out_.tell(Kept{told.message, answer.header.status, 0, 0});
                         return ServerLeg::Parts::last;
                       });
    return;
  }
  if (Open* open = connection_.open(told.open)) ++open->writes;
  Scope scope{Scope::Of::open, told.open, {}};
  if (const auto write = parse_write_request(message, message.first())) {
    length = write->data.size();
    promise.range = {write->offset, write->offset + length};
    // Servers need not write in the order of the requests.
    if (length) scope = {Scope::Of::overlap, told.open, promise.range};
  }
  leg_.send_promised(frame.bytes, scope, promise, [this, told, length, now](const Message& answer) {
    const auto reply = parse_write_reply(answer.first());
    if (answer.header.status != 0 || (length != 0 && (!reply || reply->count < length)))
      losses_.refused(told.open);
    volumes_.changed();
    out_.tell(Kept{told.message, answer.header.status, reply ? reply->count : 0, 0});
    if (const Open* open = connection_.open(told.open)) {
      questions_.written(now, *open, length);
    }
    return ServerLeg::Parts::last;
  });
}

void Far::request(TimePoint now, const Frame& frame, const Message& message) {
  const Header& header = message.header;
  watch_.before(now, message);
  connection_.on_request(message);
  losses_.request(message);
  volumes_.request(message);
  if (connection_.is_ready() && !lan_over_ && losses_.goes_on_with_lost(message)) {
    connection_.answered_here(number_of(header));
    return out_.pass_on(empty_reply(header, static_cast<std::uint32_t>(Status::lost_writebehind_data)));
  }
  if (losses_.is_told_by_reset(message, lan_over_)) return out_.abort();
  const Slice passed = with_oplock_request(frame, message);
  if (is_raw(message)) return leg_.send_raw(frame.bytes, number_of(header));
  if (header.command == Command::read_andx && !message.is_chained() && connection_.is_ready()) {
    if (const auto read = parse_read_request(message.first())) {
      const OpenKey key = key_of(header.uid, header.tid, read->fid);
      if (asked_ && asked_->open == key) {
        reads_.asked(*asked_, frame.bytes, *read);
        return connection_.answered_here(number_of(header));
      } else {
        reads_.passed(key, *read);
      }
    }
  }
  if (header.command == Command::close) {
    if (const Open* open = connection_.open_of(message)) {
      reads_.closed(open->key);
      watch_.closed(now, open->key);
    }
  }
  const auto searched = searches_.request(message, passed);
  if (!searched) return connection_.answered_here(number_of(header));
  looks_.request(message, passed);
  leg_.send(*searched, number_of(header), has_answer(message), scope_of(message, connection_));
}

Slice Far::with_oplock_request(const Frame& frame, const Message& message) {
  if (stream_over_ || message.header.command != Command::nt_create_andx) return frame.bytes;
  const auto request = oplocks_.request(frame, message, surroundings_.features);
  if (request.cached && !surroundings_.features.metadata_relaxed)
    watch_.opening(message.header, *request.cached);
  return request.frame;
}

void Far::frame_from_lan(TimePoint now, const Frame& frame) {
  if (leg_.raw().under_way() && leg_.on_raw(frame, connection_)) {
    out_.pass_on(frame.bytes);
    return settle();
  }
  if (frame.kind != FrameKind::smb1) return out_.pass_on(frame.bytes);
  const auto message = parse_message(frame.message());
  if (!message) {
    // An unparsable response still counts as one. But requests of the client wait for the content of
    // responses to ours.
    const auto header = parse_header(frame.message());
    if (header && header->pid == kOwnPid) return out_.abort();
    if (header) leg_.answered(number_of(*header));
    out_.pass_on(frame.bytes);
    return settle();
  }
  if (!message->header.is_reply()) {
    server_break(now, frame, *message);
  } else if (!leg_.on_answer(*message)) {
    answered(now, frame, *message);
  }
  settle();
}

void Far::answered(TimePoint now, const Frame& frame, const Message& message) {
  auto answered = connection_.on_reply(message);
  const MessageNumber number = number_of(message.header);
  losses_.reply(message);
  leg_.set_max_mpx(connection_.negotiated().max_mpx());
  if (message.header.command == Command::negotiate) watch_.negotiated(now);
  // Before the response is passed on: afterwards the client may rely on the change.
  if (answered.request && answered.request->effect != Effect::none) reads_.changed_by(*answered.request);
  const bool wished = answered.request && oplocks_.answered(number);
  Open* open = answered.opened;
  const bool got = wished && open && open->oplock != Oplock::none;
  out_.pass_on(wished ? FarOplocks::hidden(frame, message) : frame.bytes);
  const bool is_last = !connection_.pending(number);  // otherwise: more parts follow
  if (is_last) leg_.answered(number);
  for (const Open& closed : answered.closed) {
    losses_.closed(closed);
    reads_.closed(closed.key);
    watch_.closed(now, closed.key);
    returns_.closed(closed.key);
  }
  if (open) {
    losses_.opened(*open, answered.request->opening->use);
    losses_.unmark_earlier(*open);
    if (got) {
      open->on_behalf = true;
      out_.tell(Held{open->key, static_cast<std::uint8_t>(open->oplock)});
    }
    if (open->may_cache_reads() && !surroundings_.features.metadata_relaxed) watch_.opened(now, *open);
    if (open->may_write && open->may_cache_writes() && surroundings_.features.write_behind &&
        (open->on_behalf || surroundings_.features.write_behind_cached)) {
      questions_.ask_room(now, *open);
      losses_.mark(*open);
    }
    questions_.opened(*open, number);
    reads_.opened(*open);
  }
  if (answered.request) {
    // The near half may track it: it has no handles that were opened ahead.
    if (answered.untracked) questions_.opened_untracked(*answered.untracked, number);
    questions_.over(number);
    looks_.answered(number, open);
  }
  searches_.answered(message, answered.request);
  volumes_.answered(now, message, is_last);
}

void Far::server_break(TimePoint now, const Frame& frame, const Message& message) {
  const auto locking = message.header.command == Command::locking_andx
                           ? parse_locking_request(message.first())
                           : Result<LockingRequest>(Error::malformed_record);
  if (!locking || !locking->is_oplock_release()) return out_.pass_on(frame.bytes);
  Open* open = connection_.opens().find(locking->fid);
  if (!open) return out_.pass_on(frame.bytes);
  ++counters_.breaks;
  const bool needs_answer = open->oplock != Oplock::level2;
  connection_.on_break(message);
  reads_.drop(open->key);
  if (!open->on_behalf) return out_.pass_on(frame.bytes);
  oplocks_.broken(open->name);
  const Oplock left = needs_answer && locking->oplock_level == 1 ? Oplock::level2 : Oplock::none;
  out_.tell(Break{open->key, static_cast<std::uint8_t>(left)});
  if (needs_answer) returns_.broken(now, *open, left);
}

std::optional<TimePoint> Far::next_timeout() const {
  auto first = watch_.next_timeout();
  for (const auto& each : {volumes_.next_timeout(), returns_.next_timeout()})
    if (each && (!first || *each < *first)) first = each;
  return first;
}

void Far::on_timeout(TimePoint now) {
  watch_.on_timeout(now);
  volumes_.on_timeout(now);
  if (returns_.is_late(now)) {
    twin_lost();
    out_.abort();
  }
  settle();
}

void Far::tell_marked() {
  if (lan_over_) return;
  for (const Marked& marked : losses_.poll_marks()) out_.tell(marked);
}

// Requests that waited for something that has been completed.
void Far::settle() {
  tell_marked();
  returns_.give_back();
  reads_.pump();
  searches_.pump();
  looks_.pump();
  if (stream_ended_ && !ended_ && leg_.is_idle()) {
    ended_ = true;
    if (reset_) {
      out_.abort();
    } else {
      out_.end_lan();
    }
  }
}

void Far::lan_ended(TimePoint, modules::Ending ending) {
  lose_doubtful(Cause::server_gone);  // as in smb2/far_losses.h
  // The promises can no longer be kept: the client must be informed.
  if (ending == modules::Ending::reset || leg_.owes()) return out_.abort();
  if (stream_ended_ && !ended_) {
    ended_ = true;
    out_.end_lan();
  }
  out_.end_stream();
}

void Far::stream_ended(TimePoint now, modules::Ending ending) {
  reset_ = ending == modules::Ending::reset;
  stream_ended_ = true;
  if (!reset_) losses_.client_ended();
  stream_opaque(now);
}

void Far::lan_opaque(TimePoint) {
  lan_over_ = true;
  // Responses to promised requests can no longer be recognised.
  if (leg_.owes()) out_.abort();
}

void Far::stream_opaque(TimePoint) {
  stream_over_ = true;
  if (losses_.is_told_unread()) return out_.abort();
  if (!stream_ended_) leg_.flush();  // later requests do not wait behind it
  reads_.stop();
  searches_.stop();
  questions_.stop();
  volumes_.stop();
  looks_.stop();
  watch_.stop();
  returns_.near_is_over();
  settle();
}

// Only after the near half, which remains to parse what its client opens.
modules::Reason Far::leave_alone() const {
  // Responses to our own requests must not be passed to the client.
  if (!stream_over_ || stream_ended_ || !quiet() || leg_.listens()) return reasons::optimised;
  return connection_.negotiated().why_untouchable();
}

void Far::on_surroundings(TimePoint, const Surroundings& surroundings) {
  surroundings_ = surroundings;
  losses_.may_promise(surroundings.features);
  reads_.on_surroundings(surroundings);
  questions_.on_surroundings(surroundings);
  volumes_.on_surroundings(surroundings);
  searches_.on_surroundings(surroundings);
  looks_.on_surroundings(surroundings);
  settle();
}

}  // namespace longhaul::smb::smb1
