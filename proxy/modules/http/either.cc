// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/either.h"

#include <utility>

#include "proxy/modules/http/h2/near.h"
#include "proxy/modules/http/near.h"

namespace longhaul::http {

void Either::on_surroundings(TimePoint now, const modules::Surroundings& told) {
  told_ = told;
  if (half_) return half_->on_surroundings(now, told);
  if (told.features.modules.value("http") == 0) choose(now, false);
}

void Either::from_lan(TimePoint now, Slice bytes) {
  if (half_) return half_->from_lan(now, std::move(bytes));
  hold_first(now, bytes.bytes());
}

void Either::from_lan_seen_late(TimePoint now, Slice bytes) {
  if (half_) return half_->from_lan_seen_late(now, std::move(bytes));
  at_server_ += bytes.size();
  hold_first(now, bytes.bytes());
}

void Either::seen_late_is_over(TimePoint now) {
  late_is_over_ = true;
  if (half_) half_->seen_late_is_over(now);
}

void Either::from_stream(TimePoint now, Slice bytes) {
  if (half_) return half_->from_stream(now, std::move(bytes));
  hold_of_server(now, bytes.bytes());
}

void Either::choose(TimePoint now, bool is_2) {
  if (is_2)
    half_ = std::make_unique<h2::Near>(ends_, site_, name_);
  else
    half_ = std::make_unique<Near>(ends_, site_, name_);
  half_->on_surroundings(now, told_);
  const Slice first = Slice::copy_of(std::exchange(first_, {}));
  if (at_server_ > 0) half_->from_lan_seen_late(now, first.sub(0, at_server_));
  if (late_is_over_) half_->seen_late_is_over(now);
  if (at_server_ < first.size()) half_->from_lan(now, first.from(at_server_));
  if (const Buffer held = std::exchange(of_server_, {}); !held.empty())
    half_->from_stream(now, Slice::copy_of(held));
}

}  // namespace longhaul::http
