// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "fec/field.h"
#include "fec/symbol_ring.h"
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

TEST_CASE("any m repairs over one window restore any m lost symbols") {
  const std::uint64_t seed = 1;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
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

namespace {

// All symbols that follow from sources and repairs, by solving everything again each time.
class Obvious {
 public:
  void source(SymbolId id) { known_.insert(id); }
  void repair(const Repair& r) { repairs_.push_back({r.window, r.key}); }

  std::set<SymbolId> known() {
    std::set<SymbolId> unknown;
    for (const auto& [window, key] : repairs_)
      for (SymbolId id = window.first; id < window.first + window.count; ++id)
        if (!known_.count(id)) unknown.insert(id);
    const std::vector<SymbolId> columns(unknown.begin(), unknown.end());
    std::vector<std::vector<std::uint8_t>> rows;
    for (const auto& [window, key] : repairs_) {
      std::vector<std::uint8_t> row;
      for (const SymbolId id : columns)
        row.push_back(id >= window.first && id < window.first + window.count ? coefficient(key, id) : 0);
      rows.push_back(row);
    }
    std::size_t rank = 0;
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const auto pivot = std::find_if(rows.begin() + static_cast<long>(rank), rows.end(),
                                      [&](const auto& row) { return row[column] != 0; });
      if (pivot == rows.end()) continue;
      std::swap(*pivot, rows[rank]);
      const std::uint8_t scale = inverse(rows[rank][column]);
      for (std::uint8_t& c : rows[rank]) c = multiply(c, scale);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::uint8_t factor = rows[i][column];
        if (i == rank || factor == 0) continue;
        for (std::size_t c = 0; c < columns.size(); ++c) rows[i][c] ^= multiply(factor, rows[rank][c]);
      }
      ++rank;
    }
    std::set<SymbolId> known = known_;
    for (const auto& row : rows)
      if (std::count(row.begin(), row.end(), 0) == static_cast<long>(columns.size()) - 1)
        known.insert(columns[static_cast<std::size_t>(
            std::find_if(row.begin(), row.end(), [](std::uint8_t c) { return c != 0; }) - row.begin())]);
    return known;
  }

 private:
  std::set<SymbolId> known_;
  std::vector<std::pair<Window, std::uint32_t>> repairs_;
};

}  // namespace

TEST_CASE("every symbol that can be restored is restored at once, in any order of arrival") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    WindowEncoder encoder;
    WindowDecoder decoder;
    Obvious obvious;
    struct Event {
      double when;
      SymbolId id;
      std::optional<Kept> repair;
    };
    std::vector<Event> events;
    std::vector<std::vector<std::byte>> payloads;
    const double loss = 0.5 * std::generate_canonical<double, 32>(random);
    const double disorder = seed % 3 == 0 ? 0 : static_cast<double>(random() % 40);
    for (SymbolId id = 0; id < 100; ++id) {
      payloads.push_back(random_payload(random, 30));
      encoder.add(payloads.back());
      const auto when = [&] {
        return static_cast<double>(id) + disorder * std::generate_canonical<double, 32>(random);
      };
      if (std::generate_canonical<double, 32>(random) >= loss)
        events.push_back({when(), id, {}});
      else if (random() % 4 == 0)
        events.push_back({when() + 20, id, {}});  // very late
      if (random() % 3 == 0)
        for (const Repair& r :
             encoder.repair_last(1 + static_cast<std::uint32_t>(random() % 25), 1 + random() % 2))
          if (random() % 5 != 0) events.push_back({when() + 0.5, 0, Kept(r)});
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.when < b.when; });
    std::set<SymbolId> known;
    for (const Event& e : events) {
      if (e.repair) {
        obvious.repair(e.repair->get());
        decoder.on_repair(e.repair->get());
      } else {
        obvious.source(e.id);
        decoder.on_source(e.id, payloads[e.id]);
        known.insert(e.id);
      }
      for (const auto& [id, payload] : take(decoder)) {
        CHECK(payload == payloads[id]);
        CHECK(known.insert(id).second);
      }
      REQUIRE(known == obvious.known());
      REQUIRE(adds_up(decoder));
    }
  }
}

TEST_CASE("over many symbols with losses, jumps and old repairs only sent symbols are restored") {
  const std::uint64_t seed = 3;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  WindowEncoder encoder({1024});
  WindowDecoder decoder({256, 16});
  std::vector<std::vector<std::byte>> payloads;
  std::deque<Kept> old;
  std::uint64_t recovered = 0;
  for (SymbolId id = 0; id < 30'000; ++id) {
    payloads.push_back(random_payload(random, id % 100 < 50 ? 1400 : 20));
    encoder.add(payloads.back());
    const bool outage = id % 2000 > 1500;
    if (!outage && random() % 12 != 0) decoder.on_source(id, payloads[id]);
    if (random() % 8 == 0 && id % 2000 < 1900)
      for (const Repair& r : encoder.repair_last(1 + static_cast<std::uint32_t>(random() % kMaxWindow), 1)) {
        if (!outage && random() % 12 != 0) decoder.on_repair(r);
        old.emplace_back(r);
      }
    if (old.size() > 40) {
      decoder.on_repair(old.front().get());  // again, or for the first time, long after
      old.pop_front();
    }
    for (const auto& [back, payload] : take(decoder)) {
      ++recovered;
      REQUIRE(payload == payloads[back]);
    }
    REQUIRE(decoder.held_repairs() <= 16);
    REQUIRE(adds_up(decoder));
  }
  CHECK(recovered == decoder.counters().recovered);
  CHECK(recovered > 1000);
  CHECK(decoder.counters().late > 100);
  CHECK(decoder.counters().malformed == 0);
}

TEST_CASE("on a clean path repairs are counted as wasted and nothing is restored") {
  WindowEncoder encoder;
  WindowDecoder decoder;
  const std::vector<std::byte> payload(1400, std::byte{7});
  for (SymbolId id = 0; id < 1000; ++id) {
    encoder.add(payload);
    CHECK(decoder.on_source(id, payload));
    CHECK_FALSE(decoder.on_source(id, payload));
    if (id % 10 == 9)
      for (const Repair& r : encoder.repair_last(100, 1)) decoder.on_repair(r);
  }
  CHECK_FALSE(decoder.poll_restored());
  CHECK(decoder.counters().wasted == 100);
  CHECK(decoder.counters().sources == 1000);
}

TEST_CASE("a symbol that arrives after it was restored is recognised") {
  WindowEncoder encoder;
  WindowDecoder decoder;
  const std::vector<std::byte> payload(100, std::byte{1});
  encoder.add(payload);
  const Kept repair(encoder.repair_last(1, 1)[0]);
  decoder.on_repair(repair.get());
  const auto restored = decoder.poll_restored();
  REQUIRE(restored);
  CHECK(restored->id == 0);
  CHECK(std::equal(restored->payload.begin(), restored->payload.end(), payload.begin(), payload.end()));
  CHECK_FALSE(decoder.on_source(0, payload));
  CHECK(decoder.counters().came_after == 1);
}

TEST_CASE("symbols and repairs that no encoder produces are refused") {
  WindowDecoder decoder;
  const std::vector<std::byte> coded(50, std::byte{9});
  const auto refused = [&](Window window, std::uint32_t key, Bytes bytes) {
    const auto before = decoder.counters().malformed;
    decoder.on_repair({window, key, bytes});
    CHECK(decoder.counters().malformed == before + 1);
    CHECK_FALSE(decoder.poll_restored());
  };
  refused({0, 0}, 0, coded);
  refused({0, kMaxWindow + 1}, 0, coded);
  refused({kMaxSymbolId, 2}, 0, coded);
  refused({~SymbolId{0}, 5}, 0, coded);
  refused({0, 5}, kKeys, coded);
  refused({0, 5}, 0, Bytes(coded).first(1));
  refused({0, 5}, 0, {});
  const std::vector<std::byte> huge(kLengthBytes + kMaxPayload + 1);
  refused({0, 5}, 0, huge);
  CHECK_FALSE(decoder.on_source(0, huge));
  CHECK_FALSE(decoder.on_source(kMaxSymbolId + 1, coded));

  // The only symbol of its window would be longer than the repair, or have something behind its end.
  refused({0, 1}, 0, coded);
  decoder.on_source(1, coded);
  refused({0, 2}, 0, Bytes(coded).first(40));  // shorter than a symbol it covers
  CHECK(adds_up(decoder));
}

TEST_CASE("repairs for windows that are no longer kept restore nothing") {
  WindowEncoder encoder;
  CHECK(encoder.repair_last(5, 1).empty());
  const std::vector<std::byte> payload(10);
  for (int i = 0; i < 300; ++i) encoder.add(payload);
  CHECK(encoder.first_kept() == 44);
  CHECK(encoder.repair({44, 192}, 1).size() == 1);
  CHECK(encoder.repair({43, 10}, 1).empty());
  CHECK(encoder.repair({295, 6}, 1).empty());
  CHECK(encoder.repair({100, 0}, 1).empty());
  CHECK(encoder.repair({100, 193}, 1).empty());
  CHECK(encoder.repair_last(1000, 1000).size() == kKeys);
  CHECK(encoder.repair_last(1000, 1)[0].window == Window{108, 192});
}

TEST_CASE("all implementations match byte-by-byte multiplication") {
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::vector<const Arithmetic*> all{&kIsal};
  if (gfni()) all.push_back(gfni());
  for (int round = 0; round < 20; ++round) {
    const std::size_t bytes = kVectorBytes * (1 + random() % 6), rows = 1 + random() % 9,
                      sources = random() % 300;
    std::vector<AlignedBytes> memory;
    const auto filled = [&] {
      memory.push_back(aligned_bytes(bytes));
      for (std::size_t i = 0; i < bytes; ++i) memory.back()[i] = static_cast<std::uint8_t>(random());
      return memory.back().get();
    };
    std::vector<const std::uint8_t*> from;
    for (std::size_t j = 0; j < sources; ++j) from.push_back(filled());
    std::vector<std::uint8_t> factors(rows * sources);
    for (std::uint8_t& f : factors) f = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t*> before;
    for (std::size_t i = 0; i < rows; ++i) before.push_back(filled());
    for (const Arithmetic* arithmetic : all) {
      std::vector<std::uint8_t*> to;
      for (std::size_t i = 0; i < rows; ++i) to.push_back(filled());
      for (std::size_t i = 0; i < rows; ++i) std::copy_n(before[i], bytes, to[i]);
      arithmetic->add_combinations(to, from, factors.data(), bytes);
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t at = 0; at < bytes; at += 1 + random() % 17) {
          std::uint8_t wanted = before[i][at];
          for (std::size_t j = 0; j < sources; ++j) wanted ^= multiply(factors[i * sources + j], from[j][at]);
          REQUIRE(to[i][at] == wanted);
        }
      const auto factor = static_cast<std::uint8_t>(random());
      arithmetic->multiply_add(to[0], factor, before[0], bytes);
      std::uint8_t* const itself = filled();
      std::copy_n(before[0], bytes, itself);
      arithmetic->multiply_add(itself, factor, itself, bytes);
      for (std::size_t at = 0; at < bytes; ++at)
        REQUIRE(itself[at] == static_cast<std::uint8_t>(before[0][at] ^ multiply(factor, before[0][at])));
    }
  }
}

TEST_CASE("the encoded bytes match the wire format") {
  // Two symbols, "a" and "bc", and the repairs with keys 0 and 1; other implementations must make the same.
  WindowEncoder encoder;
  const std::byte a[] = {std::byte{'a'}};
  const std::byte bc[] = {std::byte{'b'}, std::byte{'c'}};
  encoder.add(a);
  encoder.add(bc);
  std::vector<std::vector<unsigned>> coded;
  for (const Repair& r : encoder.repair_last(2, 2)) {
    coded.emplace_back();
    for (const std::byte b : r.coded) coded.back().push_back(std::to_integer<unsigned>(b));
  }
  for (unsigned key = 0; key < 2; ++key) {
    const std::uint8_t x = inverse(static_cast<std::uint8_t>(192 + key)),
                       y = inverse(static_cast<std::uint8_t>((192 + key) ^ 1));
    CHECK(coded[key] == std::vector<unsigned>{0, static_cast<unsigned>(multiply(x, 1) ^ multiply(y, 2)),
                                              static_cast<unsigned>(multiply(x, 'a') ^ multiply(y, 'b')),
                                              multiply(y, 'c')});
  }
  CHECK(coded == std::vector<std::vector<unsigned>>{{0, 160, 2, 199}, {0, 125, 223, 184}});
}
