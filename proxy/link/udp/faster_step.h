// SPDX-License-Identifier: Apache-2.0
// The result of sending a little faster for a round trip: how much more arrived, and how much of it filled
// the queue.
#pragma once
#include <algorithm>
#include <optional>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class FasterStep {
 public:
  // Packets of `epoch` are sent at `rate` instead of `base`, in bytes per second; `queue` is in seconds.
  void begin(std::uint16_t epoch, double base, double rate, double queue) {
    *this = {};
    epoch_ = epoch;
    base_ = base;
    rate_ = rate;
    queue_before_ = queue;
  }

  // The sample shows that the line delivered at `rate`.
  void on_measured(const RateSample& sample, double rate, double queue) {
    if (sample.sent_epoch == epoch_) {
      if (!queue_at_answer_) queue_at_answer_ = queue;
      best_ = std::max(best_, rate);
    }
    if (sample.sent_epoch == static_cast<std::uint16_t>(epoch_ + 1) && !answered_) {
      answered_ = true;
      queue_after_ = queue;
    }
  }
  // A client that waits for each piece before it asks for the next never keeps the line busy long enough to
  // measure it. The longest such piece only shows that the line carries more than estimated.
  bool is_longer_piece(const RateSample& sample, double least_bytes) const {
    const auto& piece = sample.beginning;
    return piece && !piece->application_limited && sample.sent_epoch == epoch_ &&
           static_cast<double>(piece->dispatched_bytes) >= least_bytes &&
           piece->dispatched_bytes > piece_bytes_;
  }
  void on_piece(std::uint64_t bytes, double rate) {
    piece_bytes_ = bytes;
    piece_rate_ = rate;
  }

  double base() const { return base_; }
  double rate() const { return rate_; }
  double best() const { return best_; }  // 0: too little was sent to measure
  double size() const { return rate_ / base_ - 1; }
  double rise() const { return best_ / base_ - 1; }
  double queue_before() const { return queue_before_; }
  // The queue when the first packet of the step was acknowledged.
  std::optional<double> queue_at_answer() const { return queue_at_answer_; }
  // The queue when the first packet after the step was acknowledged; `now` if that has not happened yet.
  double queue_after(double now) const { return answered_ ? queue_after_ : now; }
  bool answered() const { return answered_; }
  std::uint64_t piece_bytes() const { return piece_bytes_; }
  double piece_rate() const { return piece_rate_; }  // 0: there was no piece

 private:
  std::uint16_t epoch_ = 0;
  double base_ = 0, rate_ = 0;
  double best_ = 0;
  std::uint64_t piece_bytes_ = 0;  // the longest piece that was sent without a pause
  double piece_rate_ = 0;          // the rate at which it was delivered
  double queue_before_ = 0;
  std::optional<double> queue_at_answer_;
  bool answered_ = false;
  double queue_after_ = 0;
};

}  // namespace longhaul::link::udp
