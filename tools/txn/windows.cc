// SPDX-License-Identifier: Apache-2.0
// The state machines of sender and receiver.
#include "tools/txn/windows.h"

#include <algorithm>
#include <numeric>

namespace longhaul::txn {
namespace {

using namespace std::chrono_literals;

constexpr Duration kShortest = 20ms;  // a busy host's scheduling must not look like a loss
constexpr Duration kLongest = 20s;
constexpr std::size_t kMostMissing =
    500;  // in one answer, so that it fits a packet; the rest is asked for next

}  // namespace

std::uint32_t Cut::windows() const {
  const std::uint64_t window = std::uint64_t{piece_bytes} * pieces_in_window;
  return static_cast<std::uint32_t>((message_bytes + window - 1) / window);
}

std::uint32_t Cut::pieces_of(std::uint32_t window) const {
  const std::uint32_t pieces = (message_bytes - 1) / piece_bytes + 1;
  return std::min(pieces_in_window, pieces - window * pieces_in_window);
}

std::uint32_t Cut::offset_of(std::uint32_t window, std::uint32_t index) const {
  return (window * pieces_in_window + index) * piece_bytes;
}

std::uint32_t Cut::bytes_of(std::uint32_t window, std::uint32_t index) const {
  return std::min(piece_bytes, message_bytes - offset_of(window, index));
}

Duration RetransmitTimer::timeout() const { return fixed_ > Duration{0} ? fixed_ : timeout_; }

void RetransmitTimer::measured(Duration round_trip) {
  if (smoothed_) {
    variation_ = (3 * variation_ + std::chrono::abs(*smoothed_ - round_trip)) / 4;
    smoothed_ = (7 * *smoothed_ + round_trip) / 8;
  } else {
    smoothed_ = round_trip;
    variation_ = round_trip / 2;
  }
  timeout_ = std::clamp<Duration>(*smoothed_ + 4 * variation_, kShortest, kLongest);
}

void RetransmitTimer::expired() { timeout_ = std::min<Duration>(2 * timeout_, kLongest); }

WindowSender::WindowSender(Cut cut, RetransmitTimer& timer) : cut_(cut), timer_(timer) { begin_window(); }

void WindowSender::begin_window() {
  burst_ = 0;
  timeout_at_.reset();
  pending_.resize(done() ? 0 : cut_.pieces_of(window_));
  std::iota(pending_.begin(), pending_.end(), std::uint16_t{0});
}

std::optional<WindowSender::Piece> WindowSender::poll(TimePoint now) {
  if (pending_.empty()) return std::nullopt;
  const std::uint16_t index = pending_.front();
  pending_.pop_front();
  if (burst_ > 0) ++counts_.sent_again;
  if (pending_.empty()) {
    burst_sent_ = now;
    timeout_at_ = now + timer_.timeout();
  }
  return Piece{window_, burst_, index, pending_.empty()};
}

void WindowSender::on_timeout(TimePoint now) {
  if (!timeout_at_ || now < *timeout_at_) return;
  timer_.expired();
  ++counts_.timeouts;
  const std::uint16_t burst = burst_;
  begin_window();
  burst_ = static_cast<std::uint16_t>(burst + 1);
}

void WindowSender::on_acknowledgement(TimePoint now, std::uint32_t window, std::uint16_t burst) {
  if (done() || window != window_) return;
  // Karn: a window that was sent twice does not tell a round trip.
  if (burst_ == 0 && burst == 0 && timeout_at_) timer_.measured(now - burst_sent_);
  ++window_;
  begin_window();
}

void WindowSender::on_negative(std::uint32_t window, std::uint16_t burst,
                               std::span<const std::uint16_t> missing) {
  // An answer to an earlier burst tells nothing of this one; while a burst is being sent there is none to it
  // yet.
  if (done() || window != window_ || burst != burst_ || !timeout_at_) return;
  if (missing.empty() || missing.back() >= cut_.pieces_of(window_)) return;
  ++counts_.negatives;
  burst_ = static_cast<std::uint16_t>(burst_ + 1);
  timeout_at_.reset();
  pending_.assign(missing.begin(), missing.end());
}

void WindowSender::finish() {
  window_ = cut_.windows();
  begin_window();
}

WindowReceiver::WindowReceiver(Cut cut) : cut_(cut), arrived_(cut.pieces_of(0)), left_(cut.pieces_of(0)) {}

WindowReceiver::Taken WindowReceiver::on_piece(std::uint32_t window, std::uint16_t burst, std::uint16_t index,
                                               std::size_t bytes, bool asks) {
  Taken taken;
  if (window >= cut_.windows() || window > window_) return taken;
  if (index >= cut_.pieces_of(window) || bytes != cut_.bytes_of(window, index)) return taken;
  if (window < window_) {  // complete long since: the acknowledgement was lost, or late
    if (asks) taken.answer = Answer{window, burst, {}};
    return taken;
  }
  if (!arrived_[index]) {
    taken.is_new = true;
    arrived_[index] = true;
    --left_;
  }
  if (left_ == 0) {
    taken.answer = Answer{window, burst, {}};
    ++window_;
    left_ = done() ? 0 : cut_.pieces_of(window_);
    arrived_.assign(left_, false);
    return taken;
  }
  if (!asks) return taken;
  taken.answer = Answer{window, burst, {}};
  for (std::size_t i = 0; i < arrived_.size() && taken.answer->missing.size() < kMostMissing; ++i)
    if (!arrived_[i]) taken.answer->missing.push_back(static_cast<std::uint16_t>(i));
  return taken;
}

}  // namespace longhaul::txn
