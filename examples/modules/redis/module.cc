// SPDX-License-Identifier: Apache-2.0
#include "examples/modules/redis/module.h"

#include <algorithm>
#include <array>

namespace longhaul::redis {
namespace {

using modules::Ending;

constexpr std::string_view kQueued = "+QUEUED\r\n", kOk = "+OK\r\n";

std::string_view text(const Frame& frame) {
  const Bytes bytes = frame.bytes.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Commands that the server queues if they have so many arguments. It may refuse one all the same (no memory, no
// permission, a read-only replica): then EXEC fails and nothing was executed, which is how the client learns of it.
struct Queued {
  std::string_view name;
  std::uint64_t least, most;
};
constexpr std::uint64_t kAny = ~0ull;
constexpr std::array kQueuedCommands{
    Queued{"APPEND", 3, 3},  Queued{"DECR", 2, 2},     Queued{"DECRBY", 3, 3},   Queued{"DEL", 2, kAny},
    Queued{"EXISTS", 2, kAny}, Queued{"EXPIRE", 3, 3}, Queued{"GET", 2, 2},      Queued{"HDEL", 3, kAny},
    Queued{"HGET", 3, 3},    Queued{"HGETALL", 2, 2},  Queued{"HSET", 4, kAny},  Queued{"INCR", 2, 2},
    Queued{"INCRBY", 3, 3},  Queued{"LPUSH", 3, kAny}, Queued{"LRANGE", 4, 4},   Queued{"MSET", 3, kAny},
    Queued{"RPUSH", 3, kAny}, Queued{"SADD", 3, kAny}, Queued{"SET", 3, kAny},   Queued{"SMEMBERS", 2, 2},
    Queued{"SREM", 3, kAny}, Queued{"STRLEN", 2, 2},   Queued{"TTL", 2, 2},      Queued{"ZADD", 4, kAny},
    Queued{"ZREM", 3, kAny}};

bool is_queued(const Command& command) {
  const auto found = std::ranges::find(kQueuedCommands, command.name, &Queued::name);
  return found != kQueuedCommands.end() && command.arguments >= found->least && command.arguments <= found->most;
}

// After which a request no longer has one reply, or a reply no longer one request.
bool begins_other_mode(const Command& command) {
  static constexpr std::array<std::string_view, 15> kCommands{
      "CLIENT",  "DEBUG", "HELLO", "MONITOR",    "PSUBSCRIBE",  "PSYNC", "PUNSUBSCRIBE", "QUIT",
      "REPLCONF", "RESET", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SYNC", "UNSUBSCRIBE"};
  return std::ranges::find(kCommands, command.name) != kCommands.end();
}

}  // namespace

// ---- before the client

void Near::frame_from_lan(TimePoint, const Frame& request) {
  const Command command = command_of(request);
  other_mode_ |= begins_other_mode(command);
  if (other_mode_) return out_.pass_on(request.bytes);
  // Its turn comes behind every reply that is still to come from the server.
  if (is_on_ && in_transaction_ && unanswered_.empty() && is_queued(command)) {
    out_.to_lan(Slice::copy_of(std::as_bytes(std::span(kQueued))));
    out_.tell(Answered{});
    ++counters_.round_trips_saved;
    ++counters_.promises_made;
    return out_.pass_on(request.bytes);
  }
  if (command.name == "EXEC" || command.name == "DISCARD") in_transaction_ = false;
  unanswered_.push_back(command.name == "MULTI" ? Request::multi : Request::other);
  out_.pass_on(request.bytes);
}

void Near::frame_from_stream(TimePoint, const Frame& reply) {
  out_.to_lan(reply.bytes);
  if (unanswered_.empty()) return;
  // A client that has sent more after MULTI does not wait for replies, and gains nothing here.
  if (unanswered_.front() == Request::multi) in_transaction_ = text(reply) == kOk && unanswered_.size() == 1;
  unanswered_.pop_front();
}

void Near::lan_ended(TimePoint, Ending ending) {
  if (ending == Ending::reset) return out_.abort();
  out_.end_stream();
}

void Near::stream_ended(TimePoint, Ending ending) {
  if (ending == Ending::reset) return out_.abort();
  out_.end_lan();
}

modules::Reason Near::leave_alone() const {
  return other_mode_ ? modules::Reason(reasons::redis_other_mode) : modules::Reason();
}

// ---- before the server

void Far::frame_from_stream(TimePoint, const Frame& request) {
  out_.to_lan(request.bytes);
  expected_.push_back(std::exchange(next_, Reply::passed_on));
}

void Far::frame_from_lan(TimePoint, const Frame& reply) {
  const bool is_push = text(reply).starts_with('>');
  if (expected_.empty() || is_push) return out_.pass_on(reply.bytes);
  const Reply what = expected_.front();
  expected_.pop_front();
  if (what == Reply::passed_on) return out_.pass_on(reply.bytes);
  if (text(reply) == kQueued) {
    ++counters_.promises_kept;
  } else if (text(reply).starts_with('-')) {
    ++counters_.promises_failed;
    ++counters_.late_errors;
  } else {
    out_.abort();  // it was executed, outside any transaction
  }
}

bool Far::drops_any() const {
  return next_ == Reply::dropped || std::ranges::find(expected_, Reply::dropped) != expected_.end();
}

// Replies that the client must not see can no longer be told from others.
void Far::lan_opaque(TimePoint) {
  if (drops_any()) out_.abort();
}

void Far::lan_ended(TimePoint, Ending ending) {
  if (ending == Ending::reset) return out_.abort();
  out_.end_stream();
}

void Far::stream_ended(TimePoint, Ending ending) {
  if (ending == Ending::reset) return out_.abort();
  out_.end_lan();
}

modules::Reason Far::leave_alone() const {
  return stream_opaque_ && expected_.empty() ? modules::Reason(reasons::redis_other_mode) : modules::Reason();
}

// ---- the protocol

Result<std::optional<Frame>> Protocol::next(Splitter& splitter, modules::Way way) const {
  const bool from_client = (way == modules::Way::to_stream) == (side_ == twin::Side::near);
  return splitter.next(from_client ? Direction::requests : Direction::replies);
}

bool Protocol::takes(TimePoint now, const Frame&, modules::Way, Outputs& out,
                     const modules::Surroundings& surroundings) {
  if (half_) return true;
  if (side_ == twin::Side::near)
    half_ = std::make_unique<Near>(out);
  else
    half_ = std::make_unique<Far>(out);
  half_->on_surroundings(now, surroundings);
  return true;
}

}  // namespace longhaul::redis
