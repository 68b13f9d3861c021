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
// Limit of the module's own answers to a client that requests and does not read.
constexpr std::size_t kMostToLan = 16 * 1024 * 1024;
constexpr std::size_t kMaxPiece = 64 * 1024;  // of bytes from the stream
constexpr std::size_t kMinPiece = 256;        // of a message that does not fit

constexpr auto kSurroundingsEvery = 100ms;

// If the modules' memory is used up: how much a flow may still hold, so that small frames continue; how often
// the host checks whether there is room again; after how long a stalled flow that holds parts of a frame
// continues without its module; and how often a flow with frames that wait for answers takes one more piece
// from the stream, which may contain the client's answer that the server waits for.
constexpr std::size_t kHeldInAnyCase = 64 * 1024;
// The same for a module's state about the connection: some thousand open files.
constexpr std::size_t kStateInAnyCase = 1024 * 1024;
constexpr auto kLookAgainAfter = 50ms;
constexpr auto kPatienceWithoutMemory = 1s;

// How long a module may keep its promises after a connection has ended, and how long its output before an
// abort may take.
constexpr auto kPatienceAfterReset = 60s;
constexpr auto kPatienceAfterAbort = 10s;

}  // namespace

ModuleHost::ModuleHost(std::unique_ptr<modules::Module> module, link::Stream& stream,
                       std::shared_ptr<modules::Memory> memory)
    : module_(std::move(module)), stream_(stream), memory_(std::move(memory)) {}

ModuleHost::~ModuleHost() { memory_->remove(counted_bytes_); }

bool ModuleHost::run(TimePoint now, const Line& line) {
  if (give_up_at_ && now >= *give_up_at_) gave_up_ = true;
  if (gave_up_) return false;
  tell_surroundings(now, line);
  if (auto at = module_->next_timeout(); at && *at <= now && !aborts_) {
    module_->on_timeout(now);
    take_outputs(now);
  }
  bool moved = flush();
  tell_room(now);
  moved |= feed(now, line.round_trip);
  moved |= flush();
  watch_memory(now);
  return moved;
}

std::optional<link::TimePoint> ModuleHost::next_timeout() const {
  auto at = aborts_ ? std::nullopt : module_->next_timeout();
  for (const auto& other : {give_up_at_, look_again_at_})
    if (other && (!at || *other < *at)) at = other;
  return at;
}

// ------------------------------------------------------------------------------------------------- memory

void ModuleHost::count_memory() {
  queued_bytes_ = module_->queued_bytes();
  state_bytes_ = module_->state_bytes();
  const std::size_t held = to_stream_bytes_ + to_lan_.size() + module_->held_bytes() + queued_bytes_ +
                           twin_reader_.held_bytes() + state_bytes_;
  memory_->add(held);
  memory_->remove(counted_bytes_);
  counted_bytes_ = held;
}

bool ModuleHost::lan_is_held_back() const {
  return memory_->is_short() && counted_bytes_ - queued_bytes_ - state_bytes_ > kHeldInAnyCase;
}

bool ModuleHost::stream_is_held_back() const { return memory_->is_short() && queued_bytes_ > kHeldInAnyCase; }

// First nothing more is read from the LAN. That alone could last for ever, since parts of frames are useless:
// a flow with nothing else to wait for continues without its module. So does one with a large state about its
// connection, which is read meanwhile: only the LAN can report what is closed.
void ModuleHost::watch_memory(TimePoint now) {
  count_memory();
  const bool may_give_up = !to_stream_passes_ && !aborts_;
  const bool held_back = lan_is_held_back() && may_give_up;
  const bool knows_much = memory_->is_short() && state_bytes_ > kStateInAnyCase && may_give_up;
  look_again_at_.reset();
  if (stream_is_held_back() && !aborts_) look_again_at_ = now + kLookAgainAfter;
  if (!held_back && !knows_much) return held_back_since_.reset();
  look_again_at_ = now + kLookAgainAfter;
  const bool moves = to_stream_bytes_ != 0 || module_->held_bytes() == 0;
  if (!held_back_since_ || (moves && !knows_much)) held_back_since_ = now;
  if (now - *held_back_since_ < kPatienceWithoutMemory) return;
  module_->give_up_memory(now);
  take_outputs(now);
  count_memory();
}

void ModuleHost::tell_surroundings(TimePoint now, const Line& line) {
  if (aborts_ || (surroundings_at_ && now - *surroundings_at_ < kSurroundingsEvery)) return;
  surroundings_at_ = now;
  const std::size_t room = stream_.writer().may_write();
  // A running flow keeps its module when that is switched off: its parts are off, and it only passes data on.
  module_->on_surroundings(now, {.line_bytes_per_second = line.bytes_per_second,
                                 .round_trip = line.round_trip,
                                 .stream_room = room - std::min(room, to_stream_bytes_),
                                 .features = config::without_idle_parts(stream_.request().features),
                                 .contact = line.contact,
                                 .twin_session = line.session});
  take_outputs(now);
}

void ModuleHost::tell_room(TimePoint now) {
  const modules::Room room{.lan = to_lan_.size() < kShortToLan, .stream = to_stream_bytes_ < kShortToStream};
  if (aborts_ || (!room.lan && !room.stream)) return;
  module_->on_room(now, room);
  take_outputs(now);
}

// ------------------------------------------------------------------------------------------- from the LAN

bool ModuleHost::takes_lan() const {
  if (to_stream_passes_ || aborts_ || lan_ended_ || to_lan_.size() >= kMostToLan) return false;
  // Output without a reader is dropped: the module may wait for answers to its promises.
  if (!writable()) return true;
  if (lan_is_held_back()) return false;
  return to_stream_bytes_ < kShortToStream && stream_.writer().may_write() > 0;
}

void ModuleHost::from_lan(TimePoint now, Slice bytes) {
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
  // The twin's connection is lost: a receiver that does not read the earlier bytes has until then.
  if (stream_.reader().state() == ReadState::aborted) give_up_at(now + kPatienceAfterReset);
  bool moved = false;
  // A message that the twin has begun to send is completed: it had credit for it.
  while (!to_lan_passes_ && !aborts_ && to_lan_.size() < (memory_->is_short() ? kMaxPiece : kShortToLan)) {
    if (stream_is_held_back() && now - fed_at_ < kPatienceWithoutMemory) return moved;
    fed_at_ = now;
    if (std::size_t ahead = stream_.reader().readable_before_message(); ahead > 0) {
      Slice piece = stream_.reader().readable().front();
      if (std::size_t most = std::min(ahead, kMaxPiece); piece.size() > most) piece = piece.sub(0, most);
      stream_.reader().consume(piece.size(), now, round_trip);
      module_->from_stream(now, std::move(piece));
      take_outputs(now);
      count_memory();
    } else if (auto body = stream_.reader().poll_message(now, round_trip)) {
      on_record(now, std::move(*body));
    } else {
      if (stream_.reader().state() == ReadState::ended)
        tell_stream_ended(now, stream_stopped_ && stream_ended_ ? Ending::reset : Ending::closed);
      else if (stream_.reader().state() != ReadState::open)
        tell_stream_ended(now, Ending::reset);
      if (!stream_stopped_ || stream_ended_ != Ending::closed) return moved;
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
  // None of our messages is so long that it would have that many pieces.
  const bool too_much = memory_->is_short() && twin_reader_.held_bytes() > kHeldInAnyCase;
  if (!said || too_much) return take(now, modules::Abort{});
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
  if (!to_stream_passes_ || !lan_ended_ || aborts_) return;
  if (lan_ended_ == Ending::reset) return take(now, modules::Abort{});
  if (!std::exchange(stream_over_, true)) put(Item::Kind::end, {});
}

void ModuleHost::take(TimePoint now, modules::ToLan output) {
  if (is_mistake(now, lan_over_)) return;
  if (lan_ended_ != Ending::reset) to_lan_.push(std::move(output.bytes));
}

void ModuleHost::take(TimePoint now, modules::ToStream output) {
  if (!writable()) return;  // the StepAside before it was dropped as well
  if (is_mistake(now, stream_over_ || passes(Way::to_stream))) return;
  if (!output.bytes.empty()) put(Item::Kind::raw, std::move(output.bytes));
}

// A module bounds its messages; if the size of one depends on others' data all the same, only its own flow
// ends.
void ModuleHost::take(TimePoint now, modules::ToTwin output) {
  if (output.message.size() > modules::kMaxTwinMessage) return take(now, modules::Abort{});
  if (!stream_over_) put(Item::Kind::message, std::move(output.message));
}

void ModuleHost::take(TimePoint, modules::EndLan) { lan_over_ = true; }

void ModuleHost::take(TimePoint, modules::EndStream) {
  if (std::exchange(stream_over_, true)) return;
  put(Item::Kind::end, {});
}

void ModuleHost::take(TimePoint now, modules::StepAside output) {
  if (output.reason != reasons::optimised) aside_reason_ = output.reason;
  if (output.way == Way::to_lan) {
    // Otherwise the twin's messages, and its own bytes between those of the flow, would be delivered.
    if (is_mistake(now, !twin_is_aside_)) return;
    to_lan_passes_ = true;
    return;
  }
  if (std::exchange(to_stream_passes_, true)) return;
  put(Item::Kind::aside, {});
}

// What the old connection is owed is dropped with it.
void ModuleHost::take(TimePoint now, modules::Redial) {
  if (is_mistake(now, redial_ != Redial::never || lan_over_)) return;
  redial_ = Redial::asked;
  to_lan_.drop_until(to_lan_.end_offset());
  if (lan_ended_ == Ending::reset) give_up_at_.reset();
  lan_ended_.reset();
}

// A module that outputs something in the wrong order loses its own flow; the daemon continues. Builds with
// sanitizers stop instead, so that tests find the mistake.
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

void ModuleHost::put(Item::Kind kind, Slice bytes) {
  if (!writable()) return;
  to_stream_bytes_ += bytes.size();
  to_stream_.push_back({kind, std::move(bytes)});
}

// --------------------------------------------------------------------------------------- into the stream

bool ModuleHost::flush() {
  bool moved = false;
  while (!to_stream_.empty() && writable()) {
    Item& item = to_stream_.front();
    switch (item.kind) {
      case Item::Kind::raw: {
        const std::size_t room = stream_.writer().may_write();
        if (room == 0) return moved;
        moved = true;
        if (room < item.bytes.size()) {
          stream_.writer().write(item.bytes.sub(0, room));
          to_stream_bytes_ -= room;
          item.bytes = item.bytes.from(room);
          continue;
        }
        to_stream_bytes_ -= item.bytes.size();
        stream_.writer().write(std::move(item.bytes));
        break;
      }
      case Item::Kind::message:
      case Item::Kind::aside:
        if (!flush_message(item)) return moved;
        moved = true;
        break;
      case Item::Kind::end:
        stream_.writer().end();
        moved = true;
        break;
    }
    to_stream_.pop_front();
  }
  if (!to_stream_.empty() && !writable()) {
    to_stream_.clear();
    to_stream_bytes_ = 0;
  }
  return moved;
}

// True: all of it is written. If credit is short a message is sent in pieces, so that a window smaller than
// the message cannot block it for ever.
bool ModuleHost::flush_message(Item& item) {
  constexpr std::size_t kCost = link::message_cost(modules::kTwinRecordHead);
  for (;;) {
    const std::size_t room = stream_.writer().may_write();
    const std::size_t size = item.bytes.size();
    const std::size_t whole = std::min(size, modules::kMaxTwinPiece);
    const std::size_t fits = room > kCost ? std::min(whole, room - kCost) : 0;
    // A piece for every few bytes of room would cost more than it gains.
    if (room < kCost || (fits < whole && fits < kMinPiece)) {
      stream_.writer().wait_for_room();
      return false;
    }
    const bool last = fits == size;
    const auto kind = item.kind == Item::Kind::aside ? modules::TwinRecord::aside
                      : last                         ? modules::TwinRecord::message
                                                     : modules::TwinRecord::piece;
    const std::byte head{static_cast<std::uint8_t>(kind)};
    stream_.writer().write_message(Slice::joined({&head, 1}, item.bytes.bytes().first(fits)).bytes());
    to_stream_bytes_ -= fits;
    if (last) return true;
    item.bytes = item.bytes.from(fits);
  }
}

}  // namespace longhaul::flows
