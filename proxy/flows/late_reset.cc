// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/late_reset.h"

#include <utility>

namespace longhaul::flows {

using namespace std::chrono_literals;

void LateReset::after_delivery(Do reset) { try_to(std::move(reset), kTries); }

void LateReset::try_to(Do reset, int tries) {
  if (lan_.has_delivered() || tries == 0) return reset();
  if (!timer_) timer_ = std::make_unique<boost::asio::steady_timer>(lan_.executor());
  timer_->expires_after(10ms);
  timer_->async_wait(
      [alive = lan_.alive(), this, reset = std::move(reset), tries](boost::system::error_code error) {
        if (*alive && !error) try_to(reset, tries - 1);
      });
}

void LateReset::in_the_end(Do reset) {
  timer_ = std::make_unique<boost::asio::steady_timer>(lan_.executor());
  timer_->expires_after(kTries * 10ms);
  timer_->async_wait([alive = lan_.alive(), reset = std::move(reset)](boost::system::error_code error) {
    // after_delivery() may have replaced the timer.
    if (*alive && !error) reset();
  });
}

}  // namespace longhaul::flows
