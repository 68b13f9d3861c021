// SPDX-License-Identifier: Apache-2.0
// A simple in-memory store with the same contract, on one thread: for tests of users of a store, and as a
// reference for the disk store.
#pragma once
#include <deque>
#include <functional>
#include <map>

#include "codecs/reduction/segments.h"

namespace longhaul::cache {

class MemoryStore final : public reduction::SegmentStore {
 public:
  explicit MemoryStore(std::uint64_t cap_bytes = ~0ull) : cap_bytes_(cap_bytes) {}

  void attach(reduction::SegmentListener& listener) override;
  void detach(reduction::SegmentListener& listener) override;
  Put put(const reduction::SegmentName& name, std::vector<Slice> parts,
          std::vector<reduction::Hook> hooks) override;
  void drop(const reduction::SegmentName& name) override;
  std::vector<reduction::SegmentName> list(std::span<const reduction::SiteId> sites) const override;
  std::vector<reduction::SegmentName> list() const;  // of all links
  void find(std::span<const std::uint64_t> fingerprints, std::span<const reduction::SitePair> links,
            std::vector<reduction::HookHit>& hits) override;
  reduction::LoadId load(const reduction::SegmentName& name, std::uint32_t offset, std::uint32_t size,
                         reduction::SegmentListener& listener) override;

  // Carries out one pending request; returns false if there is none.
  bool poll();
  void settle() {
    while (poll()) {
    }
  }
  // From now on the segment cannot be read: loads of it fail.
  void damage(const reduction::SegmentName& name);

 private:
  struct Held {
    Buffer bytes;
    std::vector<reduction::Hook> hooks;
    std::uint64_t number = 0;
    std::uint64_t stamp = 0;
    bool readable = false;
    bool damaged = false;
  };

  void make_room(std::uint64_t bytes);
  template <class Tell>
  void tell(Tell&& tell);

  std::uint64_t cap_bytes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t counter_ = 0;
  std::map<reduction::SegmentName, Held> held_;
  std::vector<reduction::SegmentListener*> listeners_;
  std::deque<std::function<void()>> todo_;
};

}  // namespace longhaul::cache
