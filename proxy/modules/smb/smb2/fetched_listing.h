// SPDX-License-Identifier: Apache-2.0
// The part of a directory's listing that the far half has fetched and the client has not got yet: its
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
  // It is fetched from its beginning, or its rest is fetched again.
  void restart() { *this = {}; }
  // Entries that came together.
  void add(TimePoint now, const std::vector<ListingEntry>& entries);
  // The status of all further queries, behind the entries.
  void end(TimePoint now, Status status);

  bool has_next() const { return !queue_.empty() || end_; }
  // Entries, or the end, without the client having got all.
  bool has_rest() const { return !queue_.empty() || !end_; }
  bool has_come() const { return came_ != TimePoint{}; }
  std::size_t bytes() const { return queue_.bytes(); }
  // The last entries came longer ago.
  bool is_older_than(TimePoint now, modules::Duration life) const { return has_come() && now - came_ > life; }
  // A server that reports no changes may have changed what comes next.
  bool is_old(TimePoint now) const;

  // The answer to the next query; has_next(). An error other than the end: the first entry does not fit.
  struct Part {
    Status status = Status::success;
    Buffer entries;
    std::size_t count = 0;
  };
  Part take(std::uint32_t most_bytes, bool single);
  // The bytes taken since the far half was told, if it is time to tell it: it fetches a bounded part ahead.
  std::optional<std::uint64_t> poll_taken();

  static constexpr std::chrono::seconds kUnreportedLife{1};
  static constexpr std::uint64_t kToldBytes = 32 << 10;

 private:
  ListingQueue queue_;
  std::deque<std::pair<TimePoint, std::size_t>> arrived_;  // of the queue: entries that came together
  std::optional<Status> end_;
  TimePoint came_{};  // the last entries, or the end
  std::uint64_t taken_bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
