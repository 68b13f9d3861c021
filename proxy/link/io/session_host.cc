// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/session_host.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "proxy/link/stall.h"

namespace longhaul::link {
namespace asio = boost::asio;
namespace {

// Only the end of the session depends on this work.
constexpr std::uint64_t kWorkPerTurnOfEnd = 1 << 20;
constexpr std::size_t kStreamsAtOnce = 16;

}  // namespace

SessionHost::SessionHost(asio::io_context& io, Owner& owner)
    : io_(io),
      owner_(owner),
      codec_(io, [&owner] { owner.kick(); }),
      timer_(io),
      ended_timer_(io),
      self_(std::make_shared<SessionHost*>(this)) {}

SessionHost::~SessionHost() { *self_ = nullptr; }

void SessionHost::begin(const SessionConfig& config, CreditPool& pool, RetainedBudget& retained,
                        std::unique_ptr<reduction::Reduction> codec, const Token& id) {
  codec_.begin(std::move(codec));
  session_ = std::make_unique<Session>(config, pool, retained, codec_.codec(), Clock::now());
  id_ = id;
  side_ = config.side;
}

void SessionHost::fill(LinkStatus& status) const {
  if (session_) {
    status.smoothed_rtt =
        std::chrono::duration_cast<std::chrono::microseconds>(session_->liveness().smoothed_rtt());
    status.streams = session_->state().live_streams;
    status.bytes_retained = session_->state().retained_bytes;
  }
  codec_.fill(status);
}

void SessionHost::release(StreamId stream) {
  users_.erase(stream);
  if (session_) session_->release(stream);
}

SessionHost::Delivered SessionHost::deliver_events() {
  // A flow that receives an event may write, open or release streams, which causes further events: those are
  // handled in the same round.
  if (std::exchange(delivering_, true)) return Delivered::nested;
  bool expired = false;
  while (session_) {
    const auto event = session_->poll_event();
    if (!event) break;
    if (event->kind != Event::Kind::stream) {
      owner_.on_session_event(*event);
      expired |= event->kind == Event::Kind::expired ||
                 (event->kind == Event::Kind::peer_closing &&
                  session_->incoming().close_reason().code == CloseCode::shutting_down);
    } else if (event->stream_event == EventKind::opened) {
      if (Stream* stream = session_->find(event->stream)) owner_.on_opened(*stream);
    } else if (const auto user = users_.find(event->stream); user != users_.end()) {
      user->second->on_stream_event(event->stream_event);
    }
  }
  delivering_ = false;
  return expired && resumable() ? Delivered::expired : Delivered::all;
}

void SessionHost::arm_timer() {
  if (!session_ || stopped_) return;
  const auto next = session_->next_timeout();
  // A timer that fires too early is set again, which is cheaper than moving it for every packet.
  if (!next || (timer_at_ && *timer_at_ <= *next)) return;
  timer_at_ = next;
  timer_.expires_at(*next);
  timer_.async_wait([self = self_, due = *next](boost::system::error_code error) {
    if (error || !*self) return;
    SessionHost& host = **self;
    host.timer_at_.reset();
    if (!host.session_) return;
    const TimePoint now = Clock::now();
    if (now - due > kStall) host.session_->on_stall(now - due, now);
    host.session_->work().begin_turn();
    host.session_->on_timeout(now);
    host.owner_.after_activity();
    host.owner_.kick();
  });
}

void SessionHost::go_on() {
  session_->work().begin_turn();
  if (auto done = session_->go_on(Clock::now()); !done) owner_.on_failure(done.error().message());
  owner_.after_activity();
  owner_.kick();
}

void SessionHost::on_codec_ready() {
  if (session_ && codec_.codec()) go_on();
}

void SessionHost::go_on_later() {
  if (!session_ || !session_->state().has_work_left || std::exchange(goes_on_, true)) return;
  asio::post(io_, [self = self_] {
    if (!*self) return;
    (*self)->goes_on_ = false;
    if ((*self)->session_) (*self)->go_on();
  });
}

// --------------------------------------------------------------------------------------------- the end

bool SessionHost::end() {
  if (!session_ || std::exchange(ending_, true)) return false;
  session_->abandon(Clock::now());
  ended_timer_.expires_at(TimePoint::max());
  end_more_later();
  return true;
}

asio::awaitable<void> SessionHost::wait_for_end() {
  boost::system::error_code ended;
  co_await ended_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ended));
}

void SessionHost::stop() {
  stopped_ = true;
  ended_timer_.cancel();
  timer_.cancel();
}

void SessionHost::end_more_later() {
  asio::post(io_, [self = self_] {
    if (*self) (*self)->end_more();
  });
}

void SessionHost::end_more() {
  if (owner_.keeps_streams()) return end_more_later();
  WorkBudget turn(kWorkPerTurnOfEnd);
  WorkBudget::Scope working(turn);
  bool left = true;
  while (left && !turn.used_up()) {
    left = session_->end_streams(kStreamsAtOnce);
    deliver_events();
  }
  // Flows that were notified have released their streams. The others are notified now.
  while (!left && !users_.empty() && !turn.used_up()) {
    count_work(kWorkPerTurnOfEnd / kStreamsAtOnce);
    users_.extract(users_.begin()).mapped()->on_stream_event(EventKind::reset);
  }
  if (left || !users_.empty()) return end_more_later();
  session_.reset();
  codec_.end();
  ending_ = false;
  ended_timer_.cancel();
}

}  // namespace longhaul::link
