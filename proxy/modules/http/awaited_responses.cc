// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/awaited_responses.h"

#include <algorithm>
#include <utility>

namespace longhaul::http {

void AwaitedResponses::add(Awaited last) {
  const std::size_t bytes = sizeof(Entry) + memory_bytes(last.request) + last.key.size() + last.head.size();
  bytes_ += bytes;
  all_.push_back({std::move(last), bytes});
}

void AwaitedResponses::pop_first() {
  bytes_ -= all_.front().bytes;
  all_.pop_front();
}

void AwaitedResponses::clear() {
  all_.clear();
  bytes_ = 0;
}

bool AwaitedResponses::has_question(std::size_t skipped) const {
  const auto from = all_.begin() + static_cast<std::ptrdiff_t>(std::min(skipped, all_.size()));
  return std::any_of(from, all_.end(), [](const Entry& each) { return each.awaited.asked_about != nullptr; });
}

}  // namespace longhaul::http
