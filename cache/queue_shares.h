// SPDX-License-Identifier: Apache-2.0
// Limits each link's share of a queue of writes: a link alone gets three quarters of it, two get three
// sevenths each, and so on, so that a further link always finds room, however much others write (dynamic
// thresholds; A. K. Choudhury, E. L. Hahne, 1998).
#pragma once
#include <map>

#include "codecs/reduction/segments.h"

namespace longhaul::cache {

class QueueShares {
 public:
  explicit QueueShares(std::uint64_t capacity) : capacity_(capacity) {}

  bool fits(const reduction::SitePair& link, std::uint64_t bytes) const {
    if (queued_ + bytes > capacity_) return false;
    const auto queued = of_link_.find(link);
    const std::uint64_t of_link = queued == of_link_.end() ? 0 : queued->second;
    return of_link + bytes <= 3 * (capacity_ - queued_ - bytes);
  }
  void add(const reduction::SitePair& link, std::uint64_t bytes) {
    queued_ += bytes;
    of_link_[link] += bytes;
  }
  // As many bytes as were added.
  void remove(const reduction::SitePair& link, std::uint64_t bytes) {
    queued_ -= bytes;
    const auto queued = of_link_.find(link);
    if ((queued->second -= bytes) == 0) of_link_.erase(queued);
  }
  std::uint64_t queued_bytes() const { return queued_; }

 private:
  std::uint64_t capacity_, queued_ = 0;
  std::map<reduction::SitePair, std::uint64_t> of_link_;
};

}  // namespace longhaul::cache
