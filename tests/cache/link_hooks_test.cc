// SPDX-License-Identifier: Apache-2.0
#include "cache/link_hooks.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

namespace longhaul::cache {
namespace {

reduction::SitePair hooked_link(int number) {
  reduction::SiteId one{}, other{};
  one[0] = std::byte(number), other[0] = std::byte{201};
  return {one, other};
}

TEST_CASE("link hooks: content is found for the links that have it, and for no others") {
  std::mt19937_64 random(7);
  LinkHooks hooks;
  std::vector<reduction::Hook> mine, both;
  for (std::uint32_t i = 0; i < 100; ++i) {
    mine.push_back({random(), i * reduction::kHookGranule});
    both.push_back({random(), i * reduction::kHookGranule});
  }
  hooks.insert(hooked_link(1), 1, mine);
  hooks.insert(hooked_link(1), 2, both);
  hooks.insert(hooked_link(2), 3, both);
  const auto found = [&](const std::vector<reduction::Hook>& wanted, std::vector<reduction::SitePair> links) {
    std::vector<std::uint64_t> fingerprints;
    for (const auto& hook : wanted) fingerprints.push_back(hook.fingerprint);
    std::set<std::pair<std::size_t, Slot>> places;  // by the place in `links`
    std::size_t right = 0, last = 0;
    hooks.find(fingerprints, links,
               [&](std::uint32_t i, const reduction::SitePair& link, LinkHooks::Place place) {
                 CHECK(i >= last);
                 last = i;
                 right += place.offset == wanted[i].offset;
                 places.emplace(link == links[0] ? 0 : 1, place.slot);
               });
    return std::pair(right, places);
  };
  using Places = std::set<std::pair<std::size_t, Slot>>;
  CHECK(found(mine, {hooked_link(1)}) == std::pair(std::size_t{100}, Places{{0, 1}}));
  CHECK(found(mine, {hooked_link(2)}).first == 0);
  CHECK(found(both, {hooked_link(1), hooked_link(2)}) == std::pair(std::size_t{200}, Places{{0, 2}, {1, 3}}));
  CHECK(found(mine, {}).first == 0);
  hooks.retire(2);
  CHECK(found(both, {hooked_link(1), hooked_link(2)}).first == 100);
  hooks.clear();
  CHECK(found(mine, {hooked_link(1)}).first == 0);
}

}  // namespace
}  // namespace longhaul::cache
