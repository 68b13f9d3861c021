// SPDX-License-Identifier: Apache-2.0
#include "cache/inventory.h"

#include <catch2/catch.hpp>

#include "tests/cache/segments.h"

namespace longhaul::cache {
namespace {

using namespace test;

SegmentName name_of(std::uint64_t number) {
  SegmentName name;
  name.writer = site(static_cast<int>(number % 7 % 3));
  name.first = number;
  name.length = 1;
  std::uint64_t digest = number % 3;  // many with the same hash
  std::memcpy(name.digest.data(), &digest, sizeof digest);
  return name;
}

// The same, said in the plainest way.
struct Model {
  struct Segment {
    std::uint64_t number, stamp, place, bytes;  // `place` among those that were never of use
    std::uint64_t link() const { return number % 7 % 3; }
  };
  std::vector<Segment> segments;
  std::int64_t front = 0;

  std::vector<Segment>::iterator find(std::uint64_t number) {
    return std::find_if(segments.begin(), segments.end(),
                        [&](const Segment& s) { return s.number == number; });
  }
  static bool goes_first(const Segment& a, const Segment& b) {
    if ((a.stamp == 0) != (b.stamp == 0)) return a.stamp == 0;
    return a.stamp ? a.stamp < b.stamp
                   : static_cast<std::int64_t>(a.place) < static_cast<std::int64_t>(b.place);
  }
  // The link that has most, by some measure.
  template <class Measure>
  std::uint64_t most(Measure&& measure) {
    std::uint64_t sums[3]{};
    for (const Segment& segment : segments) sums[segment.link()] += measure(segment);
    return static_cast<std::uint64_t>(std::max_element(sums, sums + 3) - sums);
  }
  std::uint64_t next() {
    const std::uint64_t link = most([](const Segment& s) { return s.bytes; });
    const Segment* first = nullptr;
    for (const Segment& segment : segments)
      if (segment.link() == link && (!first || goes_first(segment, *first))) first = &segment;
    return first ? first->number : 0;
  }
  void bound(std::uint64_t limit, std::uint64_t most_segments) {
    for (;;) {
      std::uint64_t bytes = 0, count = 0;
      for (const Segment& segment : segments)
        if (segment.stamp) bytes += segment.bytes, ++count;
      if ((bytes <= limit && count <= most_segments) || count < 2) return;
      const std::uint64_t link =
          most([&](const Segment& s) { return s.stamp ? (bytes > limit ? s.bytes : 1) : 0; });
      auto first = segments.end();
      for (auto at = segments.begin(); at != segments.end(); ++at)
        if (at->stamp && at->link() == link && (first == segments.end() || at->stamp < first->stamp))
          first = at;
      first->stamp = 0;
      first->place = static_cast<std::uint64_t>(--front);
    }
  }
};

TEST_CASE("the order of eviction matches a plain model for any operations") {
  Random random{GENERATE(1u, 2u, 3u, 4u)};
  constexpr std::uint64_t kLimit = 5'000;
  constexpr std::size_t kMost = 30;
  Inventory inventory(kLimit, kMost);
  Model model;
  std::map<std::uint64_t, Slot> slots;
  std::vector<Slot> retired;
  std::uint64_t number = 0, stamp = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto any = [&] {
      return std::next(slots.begin(), static_cast<std::ptrdiff_t>(random.below(slots.size())));
    };
    switch (random.below(slots.size() > 60 ? 6 : 4)) {
      case 0:
      case 1: {
        auto bytes = static_cast<std::uint32_t>(1 + random.below(300));
        ++number;
        Slot slot = inventory.add(name_of(number), number, bytes, Inventory::State::readable);
        REQUIRE(slot != kNoSlot);
        slots[number] = slot;
        model.segments.push_back({number, 0, number, bytes});
        break;
      }
      case 2:
        if (slots.empty()) break;
        if (auto at = any(); inventory.use(at->second, ++stamp)) {
          model.find(at->first)->stamp = stamp;
          model.bound(kLimit, kMost);
        }
        break;
      case 3:
        if (retired.empty()) break;
        inventory.release(retired.back());
        retired.pop_back();
        break;
      default: {
        Slot next = inventory.next_to_go();
        auto at = random.once_in(3) ? any() : slots.find(inventory.at(next).number);
        inventory.retire(at->second);
        retired.push_back(at->second);
        model.segments.erase(model.find(at->first));
        slots.erase(at);
      }
    }
    Slot next = inventory.next_to_go();
    REQUIRE((next ? inventory.at(next).number : 0) == model.next());
    REQUIRE(inventory.count() == slots.size());
    std::uint64_t probe = 1 + random.below(number + 1);
    REQUIRE(inventory.find(name_of(probe)) == (slots.contains(probe) ? slots[probe] : kNoSlot));
  }
  std::uint64_t bytes = 0;
  for (const auto& segment : model.segments) bytes += segment.bytes;
  CHECK(inventory.disk_bytes() == bytes);
}

TEST_CASE("uses recorded by an earlier process determine the order of eviction") {
  Inventory inventory(1'000'000, 100);
  std::vector<Slot> slots;
  for (std::uint64_t number = 1; number <= 6; ++number) {
    SegmentName name = name_of(number);
    name.writer = {};
    slots.push_back(inventory.add(name, number, 10, Inventory::State::readable));
  }
  inventory.was_used(slots[1], 30);
  inventory.was_used(slots[3], 10);
  inventory.was_used(slots[4], 20);
  inventory.order();
  std::vector<std::uint64_t> order;
  while (Slot slot = inventory.next_to_go()) {
    order.push_back(inventory.at(slot).number);
    inventory.retire(slot);
  }
  CHECK(order == std::vector<std::uint64_t>{1, 3, 6, 4, 5, 2});
  CHECK(inventory.disk_bytes() == 0);
}

}  // namespace
}  // namespace longhaul::cache
