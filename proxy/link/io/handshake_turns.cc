// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/handshake_turns.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ctime>

namespace longhaul::link {
namespace asio = boost::asio;

Duration thread_time() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

HandshakeTurns::~HandshakeTurns() {
  *self_ = nullptr;
  for (auto& line : waiting_)
    for (auto& each : line) each->cancel();
}

asio::awaitable<void> HandshakeTurns::next(Standing standing) {
  auto turn =
      std::make_shared<asio::steady_timer>(pause_.get_executor(), asio::steady_timer::time_point::max());
  waiting_[static_cast<std::size_t>(standing)].push_back(turn);
  begin_next_later(turn);  // never at once: the event loop serves flows first
  boost::system::error_code woken;
  co_await turn->async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

void HandshakeTurns::begin_next_later(const Waiting& turn) {
  asio::post(pause_.get_executor(), [self = self_, waits = std::weak_ptr(turn)] {
    if (*self && !waits.expired()) (*self)->begin_next();
  });
}

void HandshakeTurns::begin_next() {
  if (taken_) return;
  const std::size_t allowed = pausing_ ? 1 : waiting_.size();
  for (std::size_t standing = 0; standing < allowed; ++standing) {
    auto& line = waiting_[standing];
    if (line.empty()) continue;
    taken_ = true;
    const Waiting turn = std::move(line.front());
    line.pop_front();
    turn->cancel();
    return;
  }
}

void HandshakeTurns::done(Duration processor) {
  taken_ = false;
  pausing_ = true;
  pause_.expires_at(std::max(pause_.expiry(), Clock::now() + kPause * processor));
  pause_.async_wait([self = self_](boost::system::error_code error) {
    if (error || !*self) return;
    (*self)->pausing_ = false;
    (*self)->begin_next();
  });
  if (!waiting_[0].empty()) begin_next_later(waiting_[0].front());
}

}  // namespace longhaul::link
