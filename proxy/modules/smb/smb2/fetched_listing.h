// SPDX-License-Identifier: Apache-2.0
// The part of a directory's listing that the far half has fetched and the client has not received yet: its
// entries, how the listing ends, and how old they are. near_listings.h decides when it may be used.
#pragma once
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/listing.h"

namespace longhaul::smb::smb2 {

class FetchedListing {
 public:
  // The listing is fetched from its beginning, or its rest is fetched again.
  void restart() { *this = {}; }
  // Entries that arrived together.
  void add(TimePoint now, const std::vector<ListingEntry>& entries);
  // The status of all further queries after the entries.
  void end(TimePoint now, Status status);

  bool has_next() const { return !queue_.empty() || end_; }
  // Whether there are entries, or an end, that the client has not received completely.
  bool has_rest() const { return !queue_.empty() || !end_; }
  bool has_come() const { return came_ != TimePoint{}; }
  std::size_t bytes() const { return queue_.bytes(); }
  // Whether the last entries arrived longer ago.
  bool is_older_than(TimePoint now, modules::Duration life) const { return has_come() && now - came_ > life; }
  // Whether the next part may be outdated, because not every server reports changes.
  bool is_old(TimePoint now) const;

  // The response to the next query, if has_next(). An error other than the end: the first entry does not fit.
  struct Part {
    Status status = Status::success;
    Buffer entries;
    std::size_t count = 0;
  };
  Part take(std::uint32_t most_bytes, bool single);
  // The bytes taken since the last report to the far half, if a report is due: it fetches a limited part
  // ahead.
  std::optional<std::uint64_t> poll_taken();

  static constexpr std::chrono::seconds kUnreportedLife{1};
  static constexpr std::uint64_t kToldBytes = 32 << 10;

 private:
  ListingQueue queue_;
  std::deque<std::pair<TimePoint, std::size_t>> arrived_;  // of the queue: entries that arrived together
  std::optional<Status> end_;
  TimePoint came_{};  // of the last entries, or the end
  std::uint64_t taken_bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
