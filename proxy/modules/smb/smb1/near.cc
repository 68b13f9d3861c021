// SPDX-License-Identifier: Apache-2.0
// Dispatch and ends; READs are in near_reads.cc, WRITEs and CLOSEs in near_writes.cc.
#include "proxy/modules/smb/smb1/near.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {
namespace {

// [MS-CIFS] 2.2.4.7, 2.2.4.8, 2.2.4.66: the file to be deleted or renamed. Behind a byte that announces a
// name.
std::optional<FileName> named_by_path(const Message& message) {
  const Block& block = message.first();
  const std::size_t pad = message.header.is_unicode() && (block.bytes_at + 1) % 2 ? 1 : 0;
  if (block.bytes.size() <= 1 + pad) return std::nullopt;
  return file_name(message.header.tid, block.bytes.subspan(1 + pad), message.header.is_unicode());
}

// A name that a listing must show, and that has nothing to do with open files.
bool may_create(const Message& message) {
  return std::any_of(message.blocks.begin(), message.blocks.end(), [&](const Block& block) {
    if (block.command != Command::nt_create_andx) return block.command == Command::open_andx;
    const auto create = parse_nt_create_request(block, message.header);
    return !create || create->disposition != static_cast<std::uint32_t>(Disposition::open);
  });
}

}  // namespace

void Near::frame_from_lan(TimePoint now, const Frame& frame) {
  client_goes_on();
  pass_gate(now, frame);
}

// It has come now, or has waited at the gate since before the answers that follow.
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
  learn_client(*message, policy_);
  questions_.before_request(*message);
  request(now, frame, *message);
}

void Near::request(TimePoint now, const Frame& frame, const Message& message) {
  if (connection_.why_untouchable() != reasons::optimised && is_told_by_reset(message)) return;
  if (connection_.is_ready() && !raw_.under_way()) {
    if (goes_on_with_lost(message)) return;
    if (!message.is_chained()) {
      switch (message.header.command) {
        case Command::read_andx:
          if (read(now, frame, message)) return;
          break;
        case Command::write_andx:
          if (const Open* open = connection_.open_of(message)) active(now, *open);
          if (promises_.outstanding_bytes() == 0) live_.moved(now);
          if (write(frame, message)) return;
          break;
        case Command::close:
          if (const Open* open = connection_.open_of(message); open && !open->looks) looks_.drop();
          if (close(frame, message)) return;
          break;
        case Command::trans2:
          if (questions_.request(now, frame, message, questions_may_be_answered()) ||
              searches_.request(now, message, frame.bytes))
            return;
          break;
        case Command::find_close2:
          searches_.request(now, message, frame.bytes);
          break;
        case Command::nt_create_andx:
        case Command::open_andx:
          say_who();
          if (look(now, message)) return;
          if (const Pending* pending = connection_.pending(number_of(message.header));
              pending && pending->opening && !pending->opening->open.looks)
            give_up_same_name(pending->opening->open.name);
          questions_.opening(message, questions_may_be_answered());
          break;
        case Command::remove:
        case Command::rename:
        case Command::nt_rename:
          if (const auto name = named_by_path(message)) give_up_same_name(*name);
          break;
        default:
          break;
      }
    }
    void_by(message);
  }
  note_carrier(message);
  if (const Open* open = connection_.open_of(message); open && message.header.command == Command::write_andx)
    settled_.passed_write(*open, number_of(message.header));
  if (is_raw(message) && !raw_.under_way()) raw_.begin(message.header);
  out_.pass_on(frame.bytes);
}

// Answered with a handle that was opened ahead: from here on as if the server's answer had just arrived.
bool Near::look(TimePoint now, const Message& message) {
  if (!features(&Features::metadata)) return false;
  const auto given = looks_.take(now, message);
  const auto answer = given ? parse_message(given->bytes().subspan(kFrameHeadBytes))
                            : Result<Message>(Error::malformed_header);
  if (!answer) return false;
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
  reply(now, {FrameKind::smb1, *given}, *answer);
  return true;
}

// Another open of a file, a rename and a delete break the oplock that we hold for the first: giving it up
// beforehand saves the round trip of the server's break.
void Near::give_up_same_name(const FileName& name) {
  for (auto& [fid, open] : connection_.opens()) {
    if (!open.on_behalf || open.oplock == Oplock::none || open.name.path != name.path) continue;
    drop(open);
    questions_.drop(open.key);
    looks_.drop();
    promises_.stop(open.key);
    open.oplock = Oplock::none;
    out_.tell(Broken{open.key});
  }
}

// The effect of a passing request on known data. The server protects the data of files under exclusive
// oplocks: it breaks them before another handle changes the data. Attributes may be changed by anyone.
void Near::void_by(const Message& message) {
  const Effect effect = effect_of(message);
  if (effect == Effect::file || effect == Effect::names || may_create(message)) searches_.changed();
  if (effect == Effect::none) return;
  looks_.drop();
  const Open* meant = connection_.open_of(message);
  if (meant && !message.is_chained()) {
    questions_.changed(*meant);
  } else {
    questions_.changed();
  }
  for (auto& [fid, open] : connection_.opens()) {
    const bool may_be_meant = meant == &open || message.is_chained();
    if (may_be_meant || open.oplock == Oplock::level2) drop(open);
  }
}

// The far half's reports of others' changes do not arrive: its knowledge of an open is void.
void Near::watch_contact(TimePoint now) {
  const bool doubts = is_unheard(now, surroundings_.contact, surroundings_) && !unheard_;
  unheard_ = is_unheard(now, surroundings_.contact, surroundings_);
  if (!doubts) return;
  looks_.drop();
  searches_.changed();
  questions_.unheard();
  for (auto& [fid, open] : connection_.opens()) {
    if (!open.watched) continue;
    drop(open);
    questions_.drop(open.key);
  }
}

void Near::drop(const Open& open) {
  if (!cache_.knows(open.key) || !void_.insert(open.key).second) return;
  out_.tell(Drop{open.key, cache_.drop(open.key)});
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
  const auto locking = parse_locking_request(message->first());
  if (message->header.command == Command::locking_andx && locking) {
    ++counters_.breaks;
    if (Open* open = connection_.on_break(*message)) {
      promises_.stop(open->key);
      questions_.drop(open->key);
      looks_.drop();
    } else if (std::any_of(closes_.begin(), closes_.end(),
                           [&](const auto& each) { return each.second.fid == locking->fid; })) {
      return;  // the client has closed it; the CLOSE under way answers the break
    }
  }
  out_.to_lan(frame.bytes);
}

void Near::reply(TimePoint now, const Frame& frame, const Message& message) {
  const MessageNumber number = number_of(message.header);
  const Pending* pending = connection_.pending(number);
  if (message.header.status == static_cast<std::uint32_t>(Status::lost_writebehind_data))
    telling_.passes(number);
  searches_.answered(message, pending);
  if (pending) questions_.answered(now, message, *pending);
  std::optional<Slice> told = frame.bytes;
  if (const auto carrier = carriers_.find(number); carrier != carriers_.end() && pending) {
    told = with_late_error(frame, message, *pending, carrier->second);
    if (carrier->second) settled_.answered_write(now, *carrier->second, number);
    carriers_.erase(carrier);
  }
  files_.on_reply(message);
  const auto answered = connection_.on_reply(message);
  // If that ends in a reset, no success may go out before it: a client may take it and not mind the reset.
  for (const Open& closed : answered.closed) over(closed);
  if (told && !aborted_) out_.to_lan(*told);
  if (!answered.request) return;
  questions_.after_answer(number);
  // An answer that crossed with a change may be older than it.
  if (answered.request->effect != Effect::none) {
    looks_.drop();
    searches_.changed();
    const Open* meant =
        answered.request->serial ? connection_.open_of_serial(*answered.request->serial) : nullptr;
    if (meant) {
      questions_.changed(*meant);
    } else {
      questions_.changed();
    }
  }
  if (answered.opened) {
    over(*answered.opened);
    cache_.opened(answered.opened->key);
    active(now, *answered.opened);
    tell_allowance();
  }
  if (answered.opened) files_.opened(*answered.opened, answered.request->opening->use);
  questions_.opened(answered.opened, number);
  for (const Open& closed : answered.closed) files_.closed(closed);
  reset_if_doomed();
}

void Near::over(const Open& open) {
  cache_.forget(open.key);
  questions_.forget(open.key);
  void_.erase(open.key);
  settled_.closed(open.key);
  const LivePromises::Closed closed = live_.closed(open.key, lost_file(open));
  if (closed == LivePromises::Closed::settled) out_.tell(Settled{open.key});
  if (closed == LivePromises::Closed::lost) abort(Cause::server_gone);
}

void Near::abort(Cause cause) {
  if (aborted_) return;
  aborted_ = true;
  live_.lose(cause);
  out_.abort();
}

void Near::from_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  if (const auto* ahead = std::get_if<Ahead>(&message)) {
    counters_.ahead_bytes += ahead->length;
    cache_.pushed(*ahead, attached, now);
    while (auto ready = cache_.poll_ready()) {
      const auto waiting = reads_.find(ready->message);
      if (waiting == reads_.end()) continue;
      const Header header = waiting->second;
      reads_.erase(waiting);
      connection_.answered_here(number_of(header));
      answer_read(header, ready->data);
    }
    counters_.ahead_wasted_bytes = cache_.wasted_bytes();
  } else if (const auto* drop = std::get_if<Drop>(&message)) {
    cache_.far_dropped(drop->open, drop->epoch);
    questions_.drop(drop->open);
    searches_.far_dropped(drop->open);
    looks_.drop();
  } else if (const auto* kept_now = std::get_if<Kept>(&message)) {
    live_.moved(now);
    kept(*kept_now);
  } else if (const auto* room = std::get_if<Room>(&message)) {
    room_.told(DiskTree{room->session << 16 | room->tree}, room->available_bytes, room->counted_bytes);
  } else if (const auto* held = std::get_if<Held>(&message)) {
    if (Open* open = connection_.open(held->open); open && held->level <= 3) {
      open->on_behalf = true;
      open->oplock = static_cast<Oplock>(held->level);
      open->was_write_cached |= open->may_cache_writes();
      active(now, *open);
    }
  } else if (const auto* marked = std::get_if<Marked>(&message)) {
    if (const Open* open = connection_.open(marked->open); open && open->times_settled == marked->settled) {
      live_.marked_at_twin(marked->open);
      review_undecided();
    }
  } else if (const auto* watched = std::get_if<Watched>(&message)) {
    if (Open* open = connection_.open(watched->open)) {
      if (open->watched) {
        questions_.drop(watched->open);
        looks_.drop();
      }
      open->watched = watched->watched;
    }
  } else if (const auto* broken = std::get_if<Break>(&message)) {
    taken_back(*broken);
  } else if (const auto* answer = std::get_if<Answer>(&message)) {
    if (!searches_.pushed(now, *answer, attached) && !looks_.pushed(now, *answer, attached) &&
        !questions_.pushed(now, *answer, attached))
      read_through(*answer, attached);
  }
}

void Near::taken_back(const Break& message) {
  ++counters_.breaks;
  promises_.stop(message.open);
  questions_.drop(message.open);
  looks_.drop();
  if (Open* open = connection_.open(message.open)) {
    // Given up before: it stays so.
    const bool reads =
        open->oplock != Oplock::none && message.level == static_cast<std::uint8_t>(Oplock::level2);
    open->oplock = reads ? Oplock::level2 : Oplock::none;
  }
  if (!lan_over_) out_.tell(Broken{message.open});
}

void Near::lan_ended(TimePoint, modules::Ending ending) {
  lan_over_ = true;
  if (ending == modules::Ending::closed) {
    client_goes_on();
    return out_.end_stream();
  }
  abort(Cause::client_gone);
}

void Near::stream_ended(TimePoint, modules::Ending ending) {
  if (aborted_) return;
  if (ending == modules::Ending::closed && !promises_.owes() && reads_.empty()) return out_.end_lan();
  abort(Cause::server_gone);
}

void Near::lan_opaque(TimePoint) {
  lan_over_ = true;
  // Held requests would follow bytes that pass from here on; and a client that is not read is not told what is
  // lost, or may soon be, of its promises here and elsewhere.
  const bool may_lose = lost_->any(ends_);
  goes_unread();
  unguarded_.begin();
  if (gate_.is_shut() || may_lose) abort(Cause::flow_cut);
}

// As in smb2/near.cc.
void Near::goes_unread() {
  if (lost_->told_by_reset(ends_)) abort(Cause::flow_cut);
}

Near::Leave Near::gives_up() {
  stops_ = true;
  if (promises_.waiting() != 0 || promises_.owes() || !closes_.empty() || gate_.is_shut()) return Leave::later;
  if (lost_->has_records(ends_)) return Leave::never;
  return lost_->any(ends_) ? Leave::later : Leave::now;
}

void Near::stream_opaque(TimePoint) {
  stream_over_ = true;
  // Promises and waiting requests cannot be settled any more.
  if (!quiet()) abort(Cause::server_gone);
}

bool Near::quiet() const {
  return reads_.empty() && !gate_.is_shut() && promises_.waiting() == 0 && !promises_.owes() &&
         closes_.empty() && searches_.is_idle() && questions_.is_idle();
}

// As in smb2/near.cc.
modules::Reason Near::leave_alone() const {
  const modules::Reason why = connection_.why_untouchable();
  return not_understood_ || why == reasons::smb_not_understood ? reasons::smb_not_understood : reasons::optimised;
}

void Near::on_surroundings(TimePoint, const Surroundings& surroundings) {
  surroundings_ = surroundings;
  promises_.set_line_rate(static_cast<double>(surroundings.line_bytes_per_second));
  answer_held();
  questions_.on_surroundings(surroundings);
  searches_.on_surroundings(surroundings);
  tell_allowance();
  review_undecided();
}

void Near::tell_allowance() {
  if (auto bytes = cache_.poll_allowance()) out_.tell(Allowance{*bytes});
}

}  // namespace longhaul::smb::smb1
