// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near.h"

#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {
namespace {

// [MS-CIFS] 2.2.4.7, 2.2.4.8, 2.2.4.66: the file to be deleted or renamed, after a byte that announces a
// name.
std::optional<FileName> named_by_path(const Message& message) {
  const Block& block = message.first();
  const std::size_t pad = message.header.is_unicode() && (block.bytes_at + 1) % 2 ? 1 : 0;
  if (block.bytes.size() <= 1 + pad) return std::nullopt;
  return file_name(message.header.tid, block.bytes.subspan(1 + pad), message.header.is_unicode());
}

}  // namespace

void Near::frame_from_lan(TimePoint now, const Frame& frame) {
  losses_.client_goes_on();
  pass_gate(now, frame);
}

// The frame has just arrived, or has waited at the gate since before the following responses.
void Near::pass_gate(TimePoint now, const Frame& frame) {
  if (!gate_.is_shut()) return take_frame(now, frame);
  gate_.hold(frame);
  review_gate(now);
}

bool Near::must_wait(TimePoint now, const Message& message) {
  const auto wanted = wanted_by(message);
  const bool renames = message.header.command == Command::rename || message.header.command == Command::nt_rename;
  return wanted && wanted->use != LostWrites::Use::attributes &&
         gate_.shuts_for(now, files_.of(wanted->name),
                         renames ? LostWrites::Reach::below : LostWrites::Reach::itself);
}

void Near::review_gate(TimePoint now) {
  for (const Frame& frame : gate_.poll_open(now)) pass_gate(now, frame);
}

void Near::take_frame(TimePoint now, const Frame& frame) {
  if (raw_.data_due_from_client()) {
    raw_.from_client();
    return out_.pass_on(frame.bytes);
  }
  if (frame.kind != FrameKind::smb1) {
    goes_unread();
    return out_.pass_on(frame.bytes);
  }
  const auto message = parse_message(frame.message());
  if (!message || message->header.is_reply() || message->header.pid == kOwnPid) {
    not_understood_ = true;  // or indistinguishable from requests of our own
    goes_unread();
    return out_.pass_on(frame.bytes);
  }
  if (must_wait(now, *message)) return gate_.hold(frame);
  watch_contact(now);
  connection_.on_request(*message);
  files_.on_request(*message);
  writes_.learn_client(*message);
  ahead_.before_request(*message);
  request(now, frame, *message);
}

void Near::request(TimePoint now, const Frame& frame, const Message& message) {
  if (connection_.negotiated().why_untouchable() != reasons::optimised && losses_.is_told_by_reset(message))
    return writes_.abort(Cause::flow_cut);
  if (connection_.is_ready() && !raw_.under_way()) {
    if (losses_.goes_on_with_lost(message)) {
      connection_.answered_here(number_of(message.header));
      return out_.to_lan(
          empty_reply(message.header, static_cast<std::uint32_t>(Status::lost_writebehind_data)));
    }
    if (!message.is_chained() && answers(now, frame, message)) return;
    ahead_.passes(message);
  }
  writes_.passes(message);
  if (is_raw(message) && !raw_.under_way()) raw_.begin(message.header);
  out_.pass_on(frame.bytes);
}

// Returns false if it passes.
bool Near::answers(TimePoint now, const Frame& frame, const Message& message) {
  switch (message.header.command) {
    case Command::read_andx:
      return ahead_.read(now, frame, message);
    case Command::write_andx:
      writes_.requested(now, connection_.open_of(message));
      return write(frame, message);
    case Command::close:
      if (const Open* open = connection_.open_of(message)) ahead_.closing(*open);
      return close(frame, message);
    case Command::trans2:
    case Command::find_close2:
      return ahead_.search_or_query(now, frame, message);
    case Command::nt_create_andx:
    case Command::open_andx:
      return answers_open(now, message);
    case Command::remove:
    case Command::rename:
    case Command::nt_rename:
      if (const auto name = named_by_path(message)) oplocks_.give_up(*name);
      return false;
    default:
      return false;
  }
}

bool Near::answers_open(TimePoint now, const Message& message) {
  losses_.say_who();
  if (const auto given = ahead_.look(now, message)) {
    // From here on as if the server's response had just arrived.
    if (const auto answer = parse_message(given->bytes().subspan(kFrameHeadBytes))) {
      reply(now, {FrameKind::smb1, *given}, *answer);
      return true;
    }
  }
  if (const Pending* pending = connection_.pending(number_of(message.header));
      pending && pending->opening && !pending->opening->open.looks)
    oplocks_.give_up(pending->opening->open.name);
  ahead_.opening(message);
  return false;
}

bool Near::write(const Frame& frame, const Message& message) {
  const auto write = parse_write_request(message, message.first());
  if (!write) return false;
  const Header& header = message.header;
  Open* open = connection_.open(key_of(header.uid, header.tid, write->fid));
  const auto conditions = open ? writes_.may_promise(*open, header, *write) : std::nullopt;
  if (!conditions) return false;
  ahead_.written(*open);
  return writes_.promise(*open, frame, header, *write, *conditions);
}

bool Near::close(const Frame& frame, const Message& message) {
  const auto close = parse_close_request(message.first());
  if (!close) return false;
  const Header& header = message.header;
  const Open* open = connection_.open(key_of(header.uid, header.tid, close->fid));
  if (!open || !local_.may(&Features::metadata) || !may_be_closed_early(*open, header, *close) ||
      !keeps_handle(*open, connection_.opens().all()) || writes_.promises().waiting(open->key) != 0 ||
      writes_.promises().failed(open->key))
    return false;
  if (!open->looks && ahead_.reads().waits_in(header.uid, header.tid)) return false;  // perhaps of this file
  const OpenKey key = open->key;
  closes_.pass(frame, *open, writes_.next_number());
  ++counters_.promises_made;
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
  connection_.answered_here(number_of(header));
  if (const auto closed = connection_.close(key)) over(*closed);
  out_.to_lan(empty_reply(header, 0));
  return true;
}

// The far half's reports of others' changes do not arrive.
void Near::watch_contact(TimePoint now) {
  const bool doubts = is_unheard(now, local_.surroundings().contact, local_.surroundings());
  if (doubts && !unheard_) ahead_.unheard();
  unheard_ = doubts;
}

void Near::frame_from_stream(TimePoint now, const Frame& frame) {
  if (raw_.under_way()) {
    const auto says = raw_.from_server(frame, connection_);
    const bool is_answered = says == RawTransfer::Says::go_ahead || !raw_.under_way();
    if (is_answered) connection_.answered_here(raw_.number());
    if (says != RawTransfer::Says::other) return out_.to_lan(frame.bytes);
  }
  if (frame.kind != FrameKind::smb1) return out_.to_lan(frame.bytes);
  const auto message = parse_message(frame.message());
  if (!message) return out_.to_lan(frame.bytes);
  if (message->header.is_reply()) return reply(now, frame, *message);
  if (oplocks_.broken(*message)) out_.to_lan(frame.bytes);
}

void Near::reply(TimePoint now, const Frame& frame, const Message& message) {
  const MessageNumber number = number_of(message.header);
  const Pending* pending = connection_.pending(number);
  losses_.passes(message);
  ahead_.before_answer(now, message, pending);
  const std::optional<Slice> told = writes_.with_late_error(now, frame, message, pending);
  files_.on_reply(message);
  const auto answered = connection_.on_reply(message);
  // If this ends in a reset, no success may be sent before it: a client may accept it and ignore the reset.
  for (const Open& closed : answered.closed) over(closed);
  if (told && !writes_.is_aborted()) out_.to_lan(*told);
  if (!answered.request) return;
  ahead_.after_answer(*answered.request);
  if (answered.opened) over(*answered.opened);
  ahead_.opened(answered.opened, number);
  if (answered.opened) {
    writes_.active(now, *answered.opened);
    files_.opened(*answered.opened, answered.request->opening->use);
  }
  for (const Open& closed : answered.closed) files_.closed(closed);
  writes_.reset_if_doomed();
}

void Near::over(const Open& open) {
  ahead_.forget(open.key);
  writes_.over(open);
}

void Near::from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  if (const auto* ahead = std::get_if<Ahead>(&message)) {
    ahead_.pushed(now, *ahead, attached);
  } else if (const auto* drop = std::get_if<Drop>(&message)) {
    ahead_.far_dropped(*drop);
  } else if (const auto* kept_now = std::get_if<Kept>(&message)) {
    kept(now, *kept_now);
  } else if (const auto* room = std::get_if<Room>(&message)) {
    writes_.room(*room);
  } else if (const auto* held = std::get_if<Held>(&message)) {
    oplocks_.held(now, *held);
  } else if (const auto* marked = std::get_if<Marked>(&message)) {
    writes_.marked(*marked);
  } else if (const auto* watched = std::get_if<Watched>(&message)) {
    oplocks_.watched(*watched);
  } else if (const auto* broken = std::get_if<Break>(&message)) {
    oplocks_.taken_back(*broken);
  } else if (const auto* answer = std::get_if<Answer>(&message)) {
    ahead_.pushed(now, *answer, attached);
  }
}

void Near::kept(TimePoint now, const Kept& kept) {
  writes_.moved(now);
  const auto closed = closes_.kept(kept);
  if (!closed) return writes_.kept(kept);
  const bool good = *closed == NearCloses::Outcome::kept;
  ++(good ? counters_.promises_kept : counters_.promises_failed);
  // For the client the file is closed, and complete. If it is not, only a reset can report that.
  if (!good) writes_.abort(Cause::server_gone);
}

void Near::lan_ended(TimePoint, modules::Ending ending) {
  local_.client_is_over();
  if (ending == modules::Ending::closed) {
    losses_.client_goes_on();
    return out_.end_stream();
  }
  writes_.abort(Cause::client_gone);
}

void Near::stream_ended(TimePoint, modules::Ending ending) {
  if (writes_.is_aborted()) return;
  if (ending == modules::Ending::closed && !writes_.promises().owes() && ahead_.reads().is_idle())
    return out_.end_lan();
  writes_.abort(Cause::server_gone);
}

void Near::lan_opaque(TimePoint) {
  local_.client_is_over();
  // Held requests would follow bytes that pass from now on; and a client that is not parsed is not informed
  // of losses, or imminent losses, of its promises here and elsewhere.
  const bool may_lose = losses_.any();
  goes_unread();
  losses_.begin_unguarded();
  if (gate_.is_shut() || may_lose) writes_.abort(Cause::flow_cut);
}

// As in smb2/near.cc.
void Near::goes_unread() {
  if (losses_.is_told_unread()) writes_.abort(Cause::flow_cut);
}

Near::Leave Near::gives_up() {
  writes_.stop();
  const Promises& promises = writes_.promises();
  if (promises.waiting() != 0 || promises.owes() || !closes_.is_idle() || gate_.is_shut())
    return Leave::later;
  if (losses_.has_records()) return Leave::never;
  return losses_.any() ? Leave::later : Leave::now;
}

void Near::stream_opaque(TimePoint) {
  local_.server_is_over();
  // Promises and waiting requests can no longer be settled.
  if (!quiet()) writes_.abort(Cause::server_gone);
}

bool Near::quiet() const {
  const Promises& promises = writes_.promises();
  return ahead_.is_idle() && !gate_.is_shut() && promises.waiting() == 0 && !promises.owes() &&
         closes_.is_idle();
}

// As in smb2/near.cc.
modules::Reason Near::leave_alone() const {
  const modules::Reason why = connection_.negotiated().why_untouchable();
  return not_understood_ || why == reasons::smb_not_understood ? reasons::smb_not_understood : reasons::optimised;
}

void Near::on_surroundings(TimePoint, const Surroundings& surroundings) {
  local_.on_surroundings(surroundings);
  writes_.on_surroundings();
  ahead_.on_surroundings();
}

}  // namespace longhaul::smb::smb1
