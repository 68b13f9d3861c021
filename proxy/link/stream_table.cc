// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_table.h"

#include <algorithm>

namespace longhaul::link {

Stream& StreamTable::add(std::unique_ptr<Stream> stream) {
  Entry& entry = entries_[stream->id()];
  entry.stream = std::move(stream);
  if (!next_) next_ = entry.before = entry.after = &entry;
  entry.after = next_;
  entry.before = next_->before;
  entry.before->after = entry.after->before = &entry;
  return *(recent_ = entry.stream.get());
}

void StreamTable::erase(StreamId id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.before->after = entry.after;
  entry.after->before = entry.before;
  if (next_ == &entry) next_ = entry.after == &entry ? nullptr : entry.after;
  if (recent_ == entry.stream.get()) recent_ = nullptr;
  entries_.erase(found);
  for (std::size_t& left : left_) left = std::min(left, entries_.size());
}

void StreamTable::clear() {
  next_ = nullptr;
  recent_ = nullptr;
  left_ = {};
  entries_.clear();
}

bool StreamTable::in_any_round() const {
  return std::ranges::any_of(left_, [](std::size_t left) { return left > 0; });
}

std::optional<StreamTable::Visit> StreamTable::next_visit() {
  if (!in_any_round()) return std::nullopt;
  Visit visit{*next_->stream};
  next_ = next_->after;
  for (std::size_t round = 0; round < left_.size(); ++round)
    if (left_[round] > 0) {
      --left_[round];
      visit.rounds[round] = true;
    }
  return visit;
}

}  // namespace longhaul::link
