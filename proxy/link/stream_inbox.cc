// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_inbox.h"

#include <utility>

#include "proxy/link/records.h"

namespace longhaul::link {

void StreamInbox::close() {
  bytes_.drop_until(bytes_.end_offset());
  messages_ = {};
  first_message_ = 0;
  credit_.reset();
}

Result<void> StreamInbox::add(Bytes plain, TimePoint now) {
  if (auto within = charge(plain.size(), now); !within) return within;
  bytes_.push_copy(plain);
  return {};
}

Result<void> StreamInbox::add_message(Bytes body, TimePoint now) {
  if (auto within = charge(message_cost(body.size()), now); !within) return within;
  messages_.push_back({bytes_.end_offset(), Slice::copy_of(body)});
  return {};
}

std::size_t StreamInbox::before_message() const {
  if (first_message_ == messages_.size()) return bytes_.size();
  const std::uint64_t position = messages_[first_message_].position;
  return position <= bytes_.begin_offset() ? 0 : static_cast<std::size_t>(position - bytes_.begin_offset());
}

std::optional<Slice> StreamInbox::poll_message() {
  if (first_message_ == messages_.size() || messages_[first_message_].position > bytes_.begin_offset())
    return std::nullopt;
  Slice body = std::move(messages_[first_message_++].body);
  if (first_message_ == messages_.size()) {
    messages_ = {};
    first_message_ = 0;
  } else if (first_message_ >= 64 && first_message_ > messages_.size() / 2) {
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(first_message_));
    first_message_ = 0;
  }
  return body;
}

bool StreamInbox::on_message_taken(const Slice& body, TimePoint now, Duration rtt) {
  return on_consumed(message_cost(body.size()), now, rtt);
}

}  // namespace longhaul::link
