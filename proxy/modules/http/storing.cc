// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/storing.h"

namespace longhaul::http {

void Storing::begin(Stored response) {
  drop();
  response_ = std::move(response);
}

void Storing::count() {
  if (!response_) return;
  const std::uint64_t most = site_->store.most_object_bytes();
  if (content_.size() > most) return drop();
  site_->pending_bytes += content_.size() - counted_bytes_;
  counted_bytes_ = content_.size();
  if (site_->pending_bytes > 2 * most) drop();
}

void Storing::complete(const std::string& key, std::uint64_t erasures, bool uses_disk) {
  if (response_ && !site_->store.was_erased(key, erasures)) {
    response_->in_memory_only = !uses_disk;
    response_->content_bytes = content_.size();
    response_->content = content_.take();
    site_->store.put(key, *std::exchange(response_, std::nullopt));
  }
  drop();
}

void Storing::drop() {
  site_->pending_bytes -= counted_bytes_;
  counted_bytes_ = 0;
  response_.reset();
  content_ = {};
}

}  // namespace longhaul::http
