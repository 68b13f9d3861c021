// SPDX-License-Identifier: Apache-2.0
// What becomes of blocks when a history is cleared or damaged, or a block is requested again: right bytes, or
// a reset.
#include "codecs/reduction/reduction.h"

#include "codecs/reduction/twins.h"

using namespace longhaul;
using namespace longhaul::reduction;

TEST_CASE("after either side clears, earlier bytes are not referenced and memory is released") {
  for (int who : {0, 1}) {
    INFO("cleared by " << who);
    Twins twins(10);
    twins.meet();
    Traffic traffic(10);
    std::string noise = traffic.noise(3'000'000);
    transfer(twins, 1, noise);
    transfer(twins, 3, noise);
    std::uint64_t before = twins.wire_bytes(0);
    REQUIRE(before < noise.size() * 102 / 100);
    // With blocks under way.
    twins.hold(0, 5);
    for (int i = 0; i < 10; ++i)
      twins.write(0, 5, std::string_view(noise).substr(static_cast<std::size_t>(i) * 50'000, 50'000));
    twins.side(who).clear();
    twins.settle();
    twins.release(0, 5);
    twins.settle();
    CHECK(twins.side(0).counters().encoder.ring_filled_bytes < 600'000);
    CHECK(twins.side(1).counters().decoder.ring_filled_bytes < 600'000);
    before = twins.wire_bytes(0);
    transfer(twins, 7, std::string_view(noise).substr(1'000'000));
    CHECK(twins.wire_bytes(0) - before > 2'000'000 - 600'000);
    before = twins.wire_bytes(0);
    transfer(twins, 9, std::string_view(noise).substr(1'000'000));
    CHECK(twins.wire_bytes(0) - before < 20'000);
    CHECK(twins.failed_streams() == 0);
    CHECK(twins.side(1).counters().decoder.needs == 0);
  }
}

TEST_CASE("clear at any moment, with traffic both ways") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Twins twins(seed);
    Traffic traffic(seed);
    for (int i = 0; i < 400; ++i) {
      twins.write(static_cast<int>(twins.random() % 2), 1 + twins.random() % 5,
                  traffic.some(1 + twins.random() % 20'000));
      if (twins.random() % 30 == 0) twins.side(static_cast<int>(twins.random() % 2)).clear();
      for (std::uint64_t steps = twins.random() % 4; steps > 0; --steps) twins.step();
    }
    twins.settle();
    CHECK(twins.failed_streams() == 0);
    for (int i : {0, 1}) CHECK(twins.side(i).counters().decoder.needs == 0);
  }
}

TEST_CASE("flipped bits in either history never cause wrong output") {
  std::uint64_t mismatches = 0, recovered = 0, restarts = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    INFO("seed " << seed);
    Twins twins(seed);
    twins.resets_are_expected = true;  // where a block flipped that is asked for again
    twins.meet();
    Traffic traffic(seed);
    for (int i = 0; i < 400; ++i) {
      twins.write(0, 1 + twins.random() % 8, traffic.some(1 + twins.random() % 30'000));
      for (std::uint64_t steps = twins.random() % 4; steps > 0; --steps) twins.step();
      if (i < 100 || twins.random() % 4) continue;
      dedup::HistoryRing* ring = seed % 2 ? twins.side(0).encoder().ring() : twins.side(1).decoder().ring();
      std::uint64_t span = ring->head() - ring->floor();
      for (int flips = 0; span && flips < 20; ++flips) {
        MutableBytes byte = ring->reserve(ring->floor() + twins.random() % span, 1);
        byte[0] ^= std::byte(1 << twins.random() % 8);
      }
    }
    twins.settle();
    mismatches += twins.side(1).counters().decoder.mismatches;
    recovered += twins.side(1).counters().decoder.recovered;
    restarts += twins.side(0).counters().encoder.restarts;
    CHECK(twins.side(0).counters().encoder.needs == twins.side(1).counters().decoder.needs);
  }
  CHECK(mismatches > 20);
  CHECK(recovered > 20);
  CHECK(restarts > 10);
}

TEST_CASE("a repeated request for a block delays only the stream of that block") {
  Twins twins(11);
  twins.meet();
  Traffic traffic(11);
  std::string noise = traffic.noise(kBlock);
  transfer(twins, 1, noise);
  MutableBytes byte = twins.side(1).decoder().ring()->reserve(kRingStart + 1000, 1);
  byte[0] ^= std::byte{4};
  twins.hold_messages(0, true);  // the answer is late
  twins.write(0, 3, noise);
  twins.write(0, 3, traffic.text(5000));
  for (int i = 0; i < 20; ++i) twins.write(0, 5, traffic.text(5000));
  std::uint64_t before = twins.delivered_bytes(0);
  while (twins.step()) {
  }
  CHECK(twins.delivered_bytes(0) - before == 100'000);
  twins.hold_messages(0, false);
  twins.settle();
  CHECK(twins.delivered_bytes(0) - before == 105'000 + kBlock);
  CHECK(twins.side(1).counters().decoder.recovered == 1);
  // From now on the encoder's blocks do not depend on the damaged history, whatever its place.
  twins.write(0, 7, noise);
  CHECK(twins.side(0).last_encoded().copied_bytes == 0);
  twins.settle();
  CHECK(twins.side(1).counters().decoder.needs == 1);
}

TEST_CASE("a stream is reset when its block is no longer available on both sides") {
  Twins twins(12);
  twins.meet();
  twins.resets_are_expected = true;
  Traffic traffic(12);
  std::string noise = traffic.noise(kBlock);
  transfer(twins, 1, noise);
  twins.side(1).decoder().ring()->reserve(kRingStart + 1000, 1)[0] ^= std::byte{4};
  twins.hold_messages(1, true);
  twins.write(0, 3, noise);
  while (twins.step()) {
  }
  twins.side(0).forget(3);
  twins.side(0).clear();
  while (twins.step()) {
  }
  twins.hold_messages(1, false);
  twins.settle();
  CHECK(twins.side(0).counters().encoder.gone == 1);
  CHECK(twins.failed_streams() == 1);
  CHECK(twins.side(1).counters().decoder.failed == 1);
}
