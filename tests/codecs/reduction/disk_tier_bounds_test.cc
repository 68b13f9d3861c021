// SPDX-License-Identifier: Apache-2.0
// The cost of a twin's messages about disks: nothing is stored of bytes that did not arrive, nothing twice,
// and long work is done in pieces.
#include "tests/codecs/reduction/disk_sites.h"

namespace longhaul::reduction {
namespace {

bool sealed(Reduction& side, std::uint64_t first, std::uint64_t length,
            const std::array<std::byte, 16>& digest) {
  Buffer message;
  ByteWriter writer(message);
  writer.u8(11);
  writer.varint(first);
  writer.varint(length);
  writer.bytes(digest);
  return side.on_message(message).has_value();
}

bool one_byte(Reduction& side, int type) {
  const std::byte message{static_cast<unsigned char>(type)};
  return side.on_message({&message, 1}).has_value();
}

// A decoder with a store that a twin without one has sent this much, in blocks.
struct Receiving {
  cache::MemoryStore store;
  Twins twins;
  std::uint64_t first = 0;

  static Options receiver(cache::MemoryStore& store) {
    Options options = ring_of(64, 8);
    options.store = &store;
    options.site.fill(std::byte{1});
    options.twin_site.fill(std::byte{2});
    return options;
  }
  Receiving() : twins(3, ring_of(64, 7), receiver(store)) { twins.meet(); }
  Reduction& side() { return twins.side(1); }
  std::uint64_t puts() {
    while (side().has_work()) side().work();
    side().on_quiet();
    while (side().has_work()) side().work();
    store.settle();
    return store.list().size();
  }
};

std::array<std::byte, 16> digest_of(std::string_view bytes) {
  const Slice slice = Slice::copy_of(as_bytes(bytes));
  return segment_digest({&slice, 1});
}

TEST_CASE("segments are made once, from bytes that blocks delivered, and only if the digest matches") {
  Receiving receiving;
  Traffic traffic(5);
  const std::string file = traffic.noise(3 << 20);
  send(receiving.twins, 0, kStream, file);
  const auto refused = [&] { return receiving.side().counters().decoder.segments_refused; };
  auto ask = [&](std::uint64_t at, std::uint64_t length, bool right = true) {
    auto digest =
        digest_of(std::string_view(file).substr(at, std::min<std::uint64_t>(length, file.size() - at)));
    if (!right) digest[3] ^= std::byte{1};
    return sealed(receiving.side(), kRingStart + at, length, digest);
  };
  // Partly of what is still to come.
  CHECK(ask(1 << 20, 3 << 20));
  CHECK(refused() == 1);
  CHECK(receiving.puts() == 0);
  CHECK(ask(0, 1 << 20));
  CHECK(refused() == 1);
  CHECK(receiving.puts() == 1);
  // Again, in part, and around it.
  CHECK(ask(0, 1 << 20));
  CHECK(ask((1 << 20) - 4096, 1 << 20));
  CHECK(ask(1 << 19, 1 << 18));
  CHECK(ask(0, 2 << 20));
  CHECK(refused() == 5);
  // Another digest than the bytes have.
  CHECK(ask(1 << 20, 1 << 20, false));
  CHECK(receiving.puts() == 1);
  CHECK(ask(2 << 20, 1 << 20));
  CHECK(receiving.puts() == 2);
  // Nonsense.
  CHECK_FALSE(ask(0, kMinSealedBytes - 1));
  CHECK_FALSE(sealed(receiving.side(), kRingStart, kMaxSegmentBytes + 1, {}));
}

TEST_CASE("a head far ahead does not turn the range between into a segment") {
  Receiving receiving;
  Traffic traffic(6);
  const std::string plain = traffic.noise(65'536);
  const std::uint64_t far = kRingStart + (40u << 20);
  Buffer content(as_bytes(plain).begin(), as_bytes(plain).end());
  auto got = receiving.side().decode(4,
                                     {.codec = 1,
                                      .plain_bytes = 65'536,
                                      .checksum = BlockChecksum().of(as_bytes(plain)),
                                      .ring_offset = far},
                                     content);
  REQUIRE(got.has_value());
  REQUIRE(got->has_value());
  for (int i = 0; i < 1000; ++i) CHECK(sealed(receiving.side(), kRingStart, kMaxSegmentBytes, {}));
  CHECK(receiving.side().counters().decoder.segments_refused == 1000);
  CHECK_FALSE(receiving.side().has_work());
  CHECK(sealed(receiving.side(), far, 65'536, digest_of(plain)));
  CHECK(receiving.puts() == 1);
}

TEST_CASE("history is stored on request in pieces, and a second request meanwhile is refused") {
  Sites sites;
  Traffic traffic(7);
  auto twins = sites.session(64);
  send(*twins, 0, kStream, traffic.noise(3 << 20));
  Reduction& side = twins->side(0);
  while (side.poll_message()) {
  }
  REQUIRE(one_byte(side, 13));
  CHECK_FALSE(one_byte(side, 13));
  std::size_t pieces = 0;
  for (; side.has_work(); ++pieces) side.work();
  CHECK(pieces >= 3);
  // Now it is answered.
  CHECK(one_byte(side, 13));
}

TEST_CASE("a peer that keeps requesting and never reads the answers is cut off") {
  const int type = GENERATE(13, 15);
  cache::MemoryStore store;
  Options options = ring_of(16, 7);
  options.store = &store;
  Reduction side(options);
  int taken = 0;
  while (taken < 100'000 && one_byte(side, type)) ++taken;
  CHECK(taken > 1'000);
  CHECK(taken < 50'000);
}

TEST_CASE("forgotten segments are announced in pieces") {
  Sites sites;
  Traffic traffic(8);
  {
    auto twins = sites.session();
    for (int i = 0; i < 150; ++i) {
      send(*twins, 0, kStream, traffic.noise(33'000));
      twins->rest();
    }
  }
  const std::size_t segments = sites.there.list().size();
  REQUIRE(segments >= 150);
  auto twins = sites.session();
  Reduction& side = twins->side(1);
  REQUIRE(one_byte(side, 15));
  CHECK_FALSE(one_byte(side, 15));
  CHECK(sites.there.list().size() >= segments - 64);
  while (side.has_work()) side.work();
  CHECK(sites.there.list().empty());
  CHECK(one_byte(side, 15));
}

}  // namespace
}  // namespace longhaul::reduction
