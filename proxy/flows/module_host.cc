// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/module_host.h"

#include <algorithm>

namespace longhaul::flows {
using link::ReadState;
using modules::Way;
using namespace std::chrono_literals;
namespace {

// How much may wait for the stream beyond its own buffer, and for the LAN, before input stops: one read's
// worth keeps both busy, and a stalled flow holds little more than one without a module.
constexpr std::size_t kShortToStream = 64 * 1024;
constexpr std::size_t kShortToLan = 128 * 1024;
// Limit of the module's local responses to a client that sends requests but does not read.
constexpr std::size_t kMostToLan = 16 * 1024 * 1024;
constexpr std::size_t kMaxPiece = 64 * 1024;  // of bytes from the stream

constexpr auto kSurroundingsEvery = 100ms;

// How long a module may keep its promises after a connection has ended, and how long its output before an
// abort may take.
constexpr auto kPatienceAfterReset = 60s;
constexpr auto kPatienceAfterAbort = 10s;

}  // namespace

bool ModuleHost::run(TimePoint now, const Line& line) {
  if (give_up_at_ && now >= *give_up_at_) gave_up_ = true;
  if (gave_up_) return false;
  tell_surroundings(now, line);
  if (auto at = module_->next_timeout(); at && *at <= now && !aborts_) {
    module_->on_timeout(now);
    take_outputs(now);
  }
  bool moved = to_stream_.flush();
  tell_room(now);
  moved |= feed(now, line.round_trip);
  moved |= to_stream_.flush();
  watch_memory(now);
  return moved;
}

std::optional<link::TimePoint> ModuleHost::next_timeout() const {
  auto at = aborts_ ? std::nullopt : module_->next_timeout();
  for (const auto& other : {give_up_at_, memory_.look_again_at()})
    if (other && (!at || *other < *at)) at = other;
  return at;
}

// ------------------------------------------------------------------------------------------------- memory

void ModuleHost::count_memory() {
  memory_.count(
      {.bytes = to_stream_.size_bytes() + to_lan_.size() + module_->held_bytes() + twin_reader_.held_bytes(),
       .queued = module_->queued_bytes(),
       .state = module_->state_bytes()});
}

void ModuleHost::watch_memory(TimePoint now) {
  count_memory();
  const bool progress = to_stream_.size_bytes() != 0 || module_->held_bytes() == 0;
  if (!memory_.must_leave_after(
          now, {.reads_lan = !has_left_lan() && !aborts_, .reads_stream = !aborts_, .progress = progress}))
    return;
  module_->give_up_memory(now);
  take_outputs(now);
  count_memory();
}

void ModuleHost::tell_surroundings(TimePoint now, const Line& line) {
  if (aborts_ || (surroundings_at_ && now - *surroundings_at_ < kSurroundingsEvery)) return;
  surroundings_at_ = now;
  const std::size_t room = stream_.writer().may_write();
  // A running flow keeps its module when it is switched off: the module's parts are off, so that it only
  // passes data on.
  module_->on_surroundings(now, {.line_bytes_per_second = line.bytes_per_second,
                                 .round_trip = line.round_trip,
                                 .stream_room = room - std::min(room, to_stream_.size_bytes()),
                                 .features = config::without_idle_parts(stream_.request().features),
                                 .contact = line.contact,
                                 .twin_session = line.session});
  take_outputs(now);
}

void ModuleHost::tell_room(TimePoint now) {
  const modules::Room room{.lan = to_lan_.size() < kShortToLan,
                           .stream = to_stream_.size_bytes() < kShortToStream};
  if (aborts_ || (!room.lan && !room.stream)) return;
  module_->on_room(now, room);
  take_outputs(now);
}

// ------------------------------------------------------------------------------------------- from the LAN

bool ModuleHost::takes_lan() const {
  if (has_left_lan() || aborts_ || lan_ended_ || to_lan_.size() >= kMostToLan) return false;
  // Output without a reader is dropped: the module may still wait for responses to its promises.
  if (!to_stream_.has_reader()) return true;
  if (memory_.lan_is_held_back()) return false;
  return to_stream_.size_bytes() < kShortToStream && stream_.writer().may_write() > 0;
}

void ModuleHost::from_lan(TimePoint now, Slice bytes) {
  if (lan_over_ && to_stream_.is_over() && stream_ended_) unwanted_lan_bytes_ += bytes.size();
  module_->from_lan(now, std::move(bytes));
  take_outputs(now);
  count_memory();
}

void ModuleHost::lan_ended(TimePoint now, Ending ending) {
  if (lan_ended_ == ending || lan_ended_ == Ending::reset) return;
  lan_ended_ = ending;
  if (ending == Ending::reset) {
    to_lan_.drop_until(to_lan_.end_offset());
    give_up_at(now + kPatienceAfterReset);
  }
  if (aborts_) return;
  module_->lan_ended(now, ending);
  take_outputs(now);
}

// ---------------------------------------------------------------------------------------- from the stream

bool ModuleHost::feed(TimePoint now, link::Duration round_trip) {
  // The twin's connection is lost: a receiver that does not read the earlier bytes is reset after this time.
  if (stream_.reader().state() == ReadState::aborted) give_up_at(now + kPatienceAfterReset);
  bool moved = false;
  // A message that the twin has begun to send is completed: it had credit for it.
  while (!to_lan_passes_ && !aborts_ && to_lan_.size() < (memory_.is_short() ? kMaxPiece : kShortToLan)) {
    if (!memory_.take_piece(now)) return moved;
    if (std::size_t ahead = stream_.reader().readable_before_message(); ahead > 0) {
      Slice piece = stream_.reader().readable().front();
      if (std::size_t most = std::min(ahead, kMaxPiece); piece.size() > most) piece = piece.sub(0, most);
      stream_.reader().consume(piece.size(), now, round_trip);
      has_unwanted_bytes_ |= lan_over_ && (to_stream_.has_ended() || to_stream_.is_over());
      module_->from_stream(now, std::move(piece));
      take_outputs(now);
      count_memory();
    } else if (auto body = stream_.reader().poll_message(now, round_trip)) {
      on_record(now, std::move(*body));
    } else {
      if (stream_.reader().state() == ReadState::ended)
        tell_stream_ended(now, to_stream_.is_stopped() && stream_ended_ ? Ending::reset : Ending::closed);
      else if (stream_.reader().state() != ReadState::open)
        tell_stream_ended(now, Ending::reset);
      if (!to_stream_.is_stopped() || stream_ended_ != Ending::closed) return moved;
      continue;  // ended, and reset since: both are reported
    }
    moved = true;
  }
  return moved;
}

void ModuleHost::tell_stream_ended(TimePoint now, Ending ending) {
  if (stream_ended_ == ending || stream_ended_ == Ending::reset) return;
  stream_ended_ = ending;
  if (ending == Ending::reset) give_up_at(now + kPatienceAfterReset);
  module_->stream_ended(now, ending);
  take_outputs(now);
}

bool ModuleHost::take_messages(TimePoint now, link::Duration round_trip) {
  bool any = false;
  while (auto body = stream_.reader().poll_message(now, round_trip)) {
    on_record(now, std::move(*body));
    any = true;
  }
  return any;
}

void ModuleHost::on_record(TimePoint now, Slice body) {
  if (aborts_) return;
  auto said = twin_reader_.feed(std::move(body));
  // No valid message is so long that it needs that many pieces.
  if (!said || memory_.refuses(twin_reader_.held_bytes())) return take(now, modules::Abort{});
  if (!*said) return;
  if ((*said)->message) {
    module_->from_twin(now, std::move(*(*said)->message));
  } else if ((*said)->aside && !std::exchange(twin_is_aside_, true)) {
    module_->twin_stepped_aside(now);
  }
  take_outputs(now);
}

// --------------------------------------------------------------------------------------- its output

void ModuleHost::take_outputs(TimePoint now) {
  while (auto output = module_->poll_output()) {
    if (aborts_) continue;
    std::visit([&](auto&& one) { take(now, std::move(one)); }, std::move(*output));
  }
  arrivals_.sent(module_->awaited(), to_lan_.end_offset());
  // The LAN will not report its end again.
  if (!has_left_lan() || !lan_ended_ || aborts_) return;
  if (lan_ended_ == Ending::reset) return take(now, modules::Abort{});
  to_stream_.end();
}

void ModuleHost::take(TimePoint now, modules::ToLan output) {
  if (is_mistake(now, lan_over_)) return;
  if (lan_ended_ != Ending::reset) to_lan_.push(std::move(output.bytes));
}

void ModuleHost::take(TimePoint now, modules::ToStream output) {
  if (!to_stream_.has_reader()) return;  // the StepAside before it was dropped as well
  if (is_mistake(now, to_stream_.has_ended() || to_stream_.passes())) return;
  to_stream_.write(std::move(output.bytes), output.is_isolated);
}

// Modules limit the size of their messages; if foreign data makes one too large, only its own flow ends.
void ModuleHost::take(TimePoint now, modules::ToTwin output) {
  if (output.message.size() > modules::kMaxTwinMessage) return take(now, modules::Abort{});
  if (!to_stream_.has_ended()) to_stream_.write_message(std::move(output.message));
}

void ModuleHost::take(TimePoint, modules::EndLan) { lan_over_ = true; }

void ModuleHost::take(TimePoint, modules::EndStream) { to_stream_.end(); }

void ModuleHost::take(TimePoint now, modules::StepAside output) {
  if (output.reason != reasons::optimised) aside_reason_ = output.reason;
  if (output.way == Way::to_lan) {
    // Otherwise the twin's messages and its generated bytes would be delivered as bytes of the flow.
    if (is_mistake(now, !twin_is_aside_)) return;
    to_lan_passes_ = true;
    return;
  }
  to_stream_.step_aside();
}

// Output for the old connection is dropped.
void ModuleHost::take(TimePoint now, modules::Redial) {
  if (is_mistake(now, redial_ != Redial::never || lan_over_)) return;
  redial_ = Redial::asked;
  to_lan_.drop_until(to_lan_.end_offset());
  if (lan_ended_ == Ending::reset) give_up_at_.reset();
  lan_ended_.reset();
}

// If a module outputs something in the wrong order, its flow is aborted and the daemon continues. Builds with
// sanitizers crash instead, so that tests find the mistake.
bool ModuleHost::is_mistake(TimePoint now, bool is_one) {
#ifdef __SANITIZE_ADDRESS__
  assert(!is_one);
#endif
  if (is_one) take(now, modules::Abort{});
  return is_one;
}

void ModuleHost::take(TimePoint now, modules::Abort) {
  aborts_ = true;
  give_up_at(now + kPatienceAfterAbort);
}

}  // namespace longhaul::flows
