// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/credit.h"

namespace longhaul::link {
namespace {

using namespace std::chrono_literals;

// A stream without data for this long returns unused credit when memory is short.
constexpr Duration kQuiet = 2s;

// Beyond this, a window that more than doubles could make repeats exceed the unanswered part of histories of
// the usual size (codecs/reduction/shared_history.h), and they would be sent plain.
constexpr std::uint64_t kFastWindow = 32u << 20;

std::uint64_t above(std::uint64_t value, std::uint64_t floor) { return value > floor ? value - floor : 0; }

}  // namespace

ReceiveCredit::ReceiveCredit(CreditPool& pool, SessionCredit& session, std::uint64_t initial,
                             std::uint64_t fixed_window)
    : pool_(pool), session_(session), fixed_window_(fixed_window), target_(initial) {
  pool_.enter();
  ++session_.streams;
  set_limit(initial);
}

ReceiveCredit::~ReceiveCredit() {
  pool_.give(from_pool_);
  pool_.taken(received_ - consumed_);
  pool_.leave();
  session_.granted -= from_pool_;
  session_.unread -= received_ - consumed_;
  --session_.streams;
}

std::uint64_t ReceiveCredit::initial_grant(const CreditPool& pool, std::uint64_t fixed_window) {
  std::uint64_t grant = pool.floor_bytes() + pool.initial_share();
  return fixed_window ? std::min(grant, fixed_window) : grant;
}

// Moves the limit as far as the pool allows; never below the current one.
void ReceiveCredit::set_limit(std::uint64_t limit) {
  std::uint64_t wanted = above(limit - consumed_, pool_.floor_bytes());
  session_.granted -= from_pool_;
  if (wanted > from_pool_) {
    std::uint64_t added = std::min(wanted - from_pool_, pool_.free_bytes());
    limit -= wanted - from_pool_ - added;
    pool_.take(added);
    from_pool_ += added;
  } else {
    pool_.give(from_pool_ - wanted);
    from_pool_ = wanted;
  }
  session_.granted += from_pool_;
  limit_ = limit;
}

bool ReceiveCredit::open_up(TimePoint now) {
  target_ = std::max(target_, initial_grant(pool_, fixed_window_));
  return grow(now, {});
}

Result<void> ReceiveCredit::on_received(std::uint64_t plain_bytes, TimePoint now) {
  if (plain_bytes > limit_ - received_) return LinkError::credit_exceeded;
  received_ += plain_bytes;
  pool_.arrived(plain_bytes);
  session_.unread += plain_bytes;
  last_received_ = now;
  return {};
}

bool ReceiveCredit::on_consumed(std::uint64_t plain_bytes, TimePoint now, Duration rtt) {
  consumed_ += plain_bytes;
  pool_.taken(plain_bytes);
  session_.unread -= plain_bytes;
  set_limit(limit_);  // consumed bytes are free for others until they are granted again
  return grow(now, rtt);
}

void ReceiveCredit::finish() {
  finished_ = true;
  proposed_.reset();
  set_limit(received_);
}

void ReceiveCredit::begin_lap(TimePoint now) {
  lap_start_ = now;
  lap_consumed_ = consumed_;
  lap_window_ = target_;
}

bool ReceiveCredit::grow(TimePoint now, Duration rtt) {
  if (finished_) return false;
  if (epoch_start_ == TimePoint{}) {
    epoch_start_ = now;
    epoch_consumed_ = consumed_;
    begin_lap(now);
  }
  rtt += stall_;
  const bool roomy = !pool_.under_pressure();
  const auto grown = [roomy](std::uint64_t earned) {
    return roomy ? std::max(earned, std::min(2 * earned, kFastWindow)) : earned;
  };
  if (Duration elapsed = now - epoch_start_; elapsed >= std::max<Duration>(rtt, 1ms)) {
    // A stream limited by its window gets twice the drained rate × RTT, and so doubles the window each round
    // trip; while memory is free and the window small, four times. A reader that stops drains nothing and
    // gets nothing.
    stall_ = stall_ * 7 / 8;
    double drained = static_cast<double>(consumed_ - epoch_consumed_);
    auto earned = static_cast<std::uint64_t>(
        2 * drained * (static_cast<double>(rtt.count()) / static_cast<double>(elapsed.count())));
    earned = grown(earned);
    target_ = roomy ? std::max(earned, target_) : std::max(earned, pool_.floor_bytes());
    epoch_start_ = now;
    epoch_consumed_ = consumed_;
  }
  if (now - lap_start_ > rtt + rtt / 4) {
    begin_lap(now);
  } else if (roomy && consumed_ - lap_consumed_ >= lap_window_ / 4 * 3) {
    // Nearly all of a window within little more than a round trip: the earned window is known already, and
    // reporting it now saves the sender a round trip. The data sent for the larger window arrives in a later
    // one. A little more than a round trip, because a burst that fills one window is otherwise cut by the end
    // of the round trip.
    target_ = std::max(target_, grown(2 * lap_window_));
    begin_lap(now);
  }
  std::uint64_t window = std::max(target_, pool_.floor_bytes());
  if (fixed_window_) window = std::min(window, fixed_window_);
  std::uint64_t held = outstanding();
  if (held >= window) return false;
  // Small steps are not worth a frame, unless the sender has almost no credit left.
  if (window - held < window / 4 && held > window / 2) return false;
  std::uint64_t floor_room = above(pool_.floor_bytes(), held);
  std::uint64_t most = held + floor_room + pool_.growth_share();
  std::uint64_t granted = std::min(window, most);
  if (granted <= held) return false;
  set_limit(consumed_ + granted);
  proposed_.reset();
  ++generation_;
  return true;
}

bool ReceiveCredit::reclaim(TimePoint now) {
  if (finished_ || from_pool_ == 0 || proposed_ || now - last_received_ < kQuiet) return false;
  std::uint64_t lower = std::max(received_, consumed_ + pool_.floor_bytes());
  if (lower >= limit_) return false;
  proposed_ = lower;
  target_ = pool_.floor_bytes();
  ++generation_;
  return true;
}

bool ReceiveCredit::on_returned(std::uint64_t generation, std::uint64_t limit, TimePoint now, Duration rtt) {
  if (!proposed_ || generation != generation_) return false;
  // The sender may have used more than the reduced credit, never more than it had, never less than has
  // arrived.
  std::uint64_t in_force = std::clamp(limit, std::max(*proposed_, received_), limit_);
  proposed_.reset();
  set_limit(in_force);
  return grow(now, rtt);
}

SendCredit::Outcome SendCredit::on_credit(std::uint64_t generation, std::uint64_t limit) {
  if (generation < generation_) return {};
  if (generation == generation_) return {.raised = false, .tell_returned = lowered_};
  // A skipped generation may have raised the limit before this one lowered it: then the peer waits for a
  // reply, although this side sees no lower limit.
  lowered_ = limit < limit_ || generation != generation_ + 1;
  generation_ = generation;
  const bool raised = limit > limit_;
  limit_ = std::max(limit, sent_);
  return {.raised = raised, .tell_returned = lowered_};
}

}  // namespace longhaul::link
