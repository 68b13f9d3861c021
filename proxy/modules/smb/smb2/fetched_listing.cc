// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/fetched_listing.h"

#include <algorithm>

namespace longhaul::smb::smb2 {

void FetchedListing::add(TimePoint now, const std::vector<ListingEntry>& entries) {
  came_ = now;
  for (const ListingEntry& entry : entries) queue_.add(entry.bytes);
  if (!entries.empty()) arrived_.emplace_back(now, entries.size());
}

void FetchedListing::end(TimePoint now, Status status) {
  came_ = now;
  end_ = status;
}

bool FetchedListing::is_old(TimePoint now) const {
  if (arrived_.empty() && !end_) return false;  // the next part is under way
  const TimePoint since = arrived_.empty() ? came_ : arrived_.front().first;
  return since != TimePoint{} && now - since > kUnreportedLife;
}

FetchedListing::Part FetchedListing::take(std::uint32_t most_bytes, bool single) {
  if (queue_.empty()) return {.status = *end_, .entries = {}};
  ListingQueue::Part part = queue_.take(most_bytes, single);
  for (std::size_t left = part.entries; left != 0;) {
    const std::size_t taken = std::min(left, arrived_.front().second);
    left -= taken;
    if ((arrived_.front().second -= taken) == 0) arrived_.pop_front();
  }
  taken_bytes_ += part.buffer.size();
  // [MS-FSA] 2.1.5.6.3: the first entry must fit.
  return {.status = part.entries ? Status::success : Status::info_length_mismatch,
          .entries = std::move(part.buffer),
          .count = part.entries};
}

std::optional<std::uint64_t> FetchedListing::poll_taken() {
  if (taken_bytes_ < kToldBytes || end_) return std::nullopt;
  return std::exchange(taken_bytes_, 0);
}

}  // namespace longhaul::smb::smb2
