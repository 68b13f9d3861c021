// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "fec/window_decoder.h"
#include "fec/window_encoder.h"

using namespace longhaul::fec;

namespace {

std::vector<std::byte> random_payload(std::mt19937_64& random, std::size_t most) {
  std::vector<std::byte> payload(random() % (most + 1));
  for (std::byte& b : payload) b = static_cast<std::byte>(random());
  return payload;
}

// A repair that outlives the encoder's next call.
struct Kept {
  Repair head;
  std::vector<std::byte> coded;
  explicit Kept(const Repair& r) : head(r), coded(r.coded.begin(), r.coded.end()) {}
  Repair get() const { return {head.window, head.key, coded}; }
};

std::map<SymbolId, std::vector<std::byte>> take(WindowDecoder& decoder) {
  std::map<SymbolId, std::vector<std::byte>> restored;
  while (const auto r = decoder.poll_restored()) {
    CHECK(restored.count(r->id) == 0);
    restored[r->id].assign(r->payload.begin(), r->payload.end());
  }
  return restored;
}

bool adds_up(const WindowDecoder& d) {
  const auto& c = d.counters();
  return c.repairs == c.recovered + c.wasted + c.late + c.malformed + d.held_repairs();
}

}  // namespace

TEST_CASE("any m repairs over one window restore any m of its symbols") {
  const std::uint64_t seed = 1;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    WindowEncoder encoder;
    WindowDecoder decoder;
    std::vector<std::vector<std::byte>> payloads;
    const std::uint32_t before = static_cast<std::uint32_t>(random() % 400);
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % kMaxWindow);
    const std::uint32_t lost = 1 + static_cast<std::uint32_t>(random() % std::min(count, 40u));
    std::set<SymbolId> missing;
    while (missing.size() < lost) missing.insert(before + random() % count);
    for (SymbolId id = 0; id < before + count; ++id) {
      payloads.push_back(random_payload(random, round % 2 ? 1400 : 90));
      CHECK(encoder.add(payloads.back()) == id);
    }
    std::vector<Kept> repairs;
    for (const Repair& r : encoder.repair_last(count, 64)) repairs.emplace_back(r);
    std::shuffle(repairs.begin(), repairs.end(), random);
    for (SymbolId id = 0; id < before + count; ++id)
      if (!missing.count(id)) decoder.on_source(id, payloads[id]);
    for (std::uint32_t i = 0; i < lost; ++i) {
      CHECK(take(decoder).empty());
      decoder.on_repair(repairs[i].get());
    }
    const auto restored = take(decoder);
    REQUIRE(restored.size() == lost);
    for (const SymbolId id : missing) CHECK(restored.at(id) == payloads[id]);
    CHECK(adds_up(decoder));
    CHECK(decoder.counters().wasted == 0);
  }
}
