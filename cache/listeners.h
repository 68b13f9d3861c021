// SPDX-License-Identifier: Apache-2.0
// The listeners that a store notifies of its segments, and their loads in progress. Listeners may be attached
// and detached during a notification.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "codecs/reduction/segments.h"

namespace longhaul::cache {

class Listeners {
 public:
  void attach(reduction::SegmentListener& listener) { all_.push_back(&listener); }
  // Leaves a null entry, because this may happen during a notification of all listeners.
  void detach(reduction::SegmentListener& listener) {
    std::replace(all_.begin(), all_.end(), &listener, static_cast<reduction::SegmentListener*>(nullptr));
    for (auto& [id, load] : loads_)
      if (load.listener == &listener) load.listener = nullptr;
  }
  template <class Tell>
  void tell(Tell&& tell) {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i]) tell(*all_[i]);
  }
  // Must not be called during a notification.
  void sweep() { std::erase(all_, nullptr); }

  struct Load {
    reduction::SegmentListener* listener;  // null: detached
    std::uint32_t size;                    // counted size; 0: nothing was requested from the disk
  };
  reduction::LoadId begin_load(reduction::SegmentListener& listener, std::uint32_t size) {
    loads_[++last_load_] = {&listener, size};
    loading_bytes_ += size;
    return last_load_;
  }
  Load end_load(reduction::LoadId id) {
    const auto found = loads_.find(id);
    const Load load = found->second;
    loads_.erase(found);
    loading_bytes_ -= load.size;
    return load;
  }
  std::size_t loading_bytes() const { return loading_bytes_; }

 private:
  std::vector<reduction::SegmentListener*> all_;
  std::map<reduction::LoadId, Load> loads_;
  reduction::LoadId last_load_ = 0;
  std::size_t loading_bytes_ = 0;
};

}  // namespace longhaul::cache
