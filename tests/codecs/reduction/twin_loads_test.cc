// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/twin_loads.h"

#include "tests/codecs/reduction/twins.h"

namespace longhaul::reduction {
namespace {

using Brought = TwinLoads::Brought;

SiteId site_of(int number) {
  SiteId id;
  id.fill(std::byte(number));
  return id;
}

// Counts how many loads are under way.
struct CountingStore final : SegmentStore {
  cache::MemoryStore disk;
  std::size_t under_way = 0, most_under_way = 0;

  void attach(SegmentListener& listener) override { disk.attach(listener); }
  void detach(SegmentListener& listener) override { disk.detach(listener); }
  Put put(const SegmentName& name, std::vector<Slice> parts, std::vector<Hook> hooks) override {
    return disk.put(name, std::move(parts), std::move(hooks));
  }
  void drop(const SegmentName& name) override { disk.drop(name); }
  std::vector<SegmentName> list(std::span<const SiteId> sites) const override { return disk.list(sites); }
  void find(std::span<const std::uint64_t> fingerprints, std::span<const SitePair> links,
            std::vector<HookHit>& hits) override {
    disk.find(fingerprints, links, hits);
  }
  LoadId load(const SegmentName& name, std::uint32_t offset, std::uint32_t size,
              SegmentListener& listener) override {
    most_under_way = std::max(most_under_way, ++under_way);
    return disk.load(name, offset, size, listener);
  }
};

// A decoder with a disk, on which segments of its peer are.
struct Receiver final : SegmentListener {
  Traffic traffic{23};
  CountingStore store;
  cache::MemoryStore& disk = store.disk;
  PeerSegments peers{store, site_of(1), {.own = {site_of(2)}, .shared = {}}, *this};
  CommonSegments own;
  BlockDecoder decoder{64u << 20};
  TwinLoads loads{peers, own, decoder};

  Receiver() { REQUIRE(decoder.on_hello({.epoch = 1, .ring_bytes = 64u << 20}).has_value()); }

  void on_stored(const SegmentName& name) override { own.add_own(name, CommonSegments::Whose::peers); }
  void on_dropped(const SegmentName& name) override { own.remove_own(name); }
  void on_loaded(LoadId load, std::optional<Slice> bytes) override {
    --store.under_way;
    CHECK(loads.on_loaded(load, bytes));
  }

  // Its content, and what it is called.
  std::pair<std::string, SegmentName> stored(std::size_t size) {
    std::string content = traffic.noise(size);
    Slice bytes = Slice::copy_of(as_bytes(content));
    SegmentName name{.writer = site_of(2), .reader = site_of(1), .epoch = 7, .first = next_, .length = 0};
    name.length = static_cast<std::uint32_t>(size);
    name.digest = segment_digest({&bytes, 1});
    next_ += size;
    CHECK(peers.put(name, bytes, {}) == PeerSegments::Put::taken);
    disk.settle();
    return {content, name};
  }
  // The twin's block, behind all of the loads.
  Result<Brought> bring(std::uint64_t stream, const std::vector<Load>& wanted) {
    Buffer names, encoded;
    BlockHeader header{.codec = kInRing | kLoads, .plain_bytes = 1, .ring_offset = kRingStart};
    for (const Load& load : wanted) {
      write_load(load, names);
      header.ring_offset = std::max(header.ring_offset, load.ring_offset + load.length);
    }
    write_encoded_fields(header.codec, {.loads = names}, encoded);
    encoded.push_back(std::byte{'x'});
    return loads.bring(stream, header, encoded);
  }
  std::string history(std::uint64_t offset, std::size_t size) {
    if (!decoder.ring()->holds(offset, size)) return "not there";
    return std::string(as_text(decoder.ring()->read(offset, size)));
  }

 private:
  std::uint64_t next_ = kRingStart;
};

Load load_of(const SegmentName& name, std::uint32_t offset, std::uint32_t length, std::uint64_t at) {
  return {CommonSegments::id_of(name), offset, length, at};
}

TEST_CASE("a block waits until all of its loads are in the history") {
  Receiver site;
  const auto [content, name] = site.stored(200'000);
  const std::vector<Load> both{load_of(name, 0, 10'000, kRingStart),
                               load_of(name, 150'000, 50'000, kRingStart + 10'000)};
  REQUIRE(site.bring(4, both).value() == Brought::waits);
  CHECK_FALSE(site.loads.poll_ready());
  REQUIRE(site.disk.poll());
  CHECK_FALSE(site.loads.poll_ready());
  CHECK(site.bring(4, both).value() == Brought::waits);
  site.disk.settle();
  CHECK(site.loads.poll_ready() == 4u);
  CHECK_FALSE(site.loads.poll_ready());
  CHECK(site.bring(4, both).value() == Brought::done);
  CHECK(site.history(kRingStart, 10'000) == content.substr(0, 10'000));
  CHECK(site.history(kRingStart + 10'000, 50'000) == content.substr(150'000));
  CHECK_FALSE(site.loads.has_message());
  // The stream's next block has loads of its own.
  site.loads.forget(4);
  CHECK(site.bring(4, {load_of(name, 0, 100, kRingStart + 60'000)}).value() == Brought::waits);
}

TEST_CASE("what is not on this disk, or of another peer, is reported and delays no block") {
  Receiver site;
  const auto [content, name] = site.stored(100'000);
  SegmentName unknown = name;
  unknown.epoch += 1;
  CHECK(site.bring(4, {load_of(unknown, 0, 1'000, kRingStart)}).value() == Brought::done);
  auto message = site.loads.poll_message();
  REQUIRE(message);
  auto cannot = parse_cannot(message->bytes().subspan(1));
  REQUIRE(cannot.has_value());
  CHECK(cannot->segment == CommonSegments::id_of(unknown));
  CHECK(cannot->ring_offset == kRingStart);
  CHECK(cannot->length == 1'000);
  CHECK_FALSE(site.loads.poll_message());
  // A segment that cannot be read any more: noticed when it is read.
  site.disk.damage(name);
  CHECK(site.bring(8, {load_of(name, 0, 1'000, kRingStart + 1'000)}).value() == Brought::waits);
  site.disk.settle();
  CHECK(site.loads.poll_ready() == 8u);
  CHECK(site.loads.has_message());
  CHECK(site.history(kRingStart + 1'000, 1'000) == "not there");
}

TEST_CASE("a stream that ended while its loads were under way is not reported as ready") {
  Receiver site;
  const auto [content, name] = site.stored(100'000);
  REQUIRE(site.bring(4, {load_of(name, 0, 1'000, kRingStart)}).value() == Brought::waits);
  site.loads.forget(4);
  site.disk.settle();
  CHECK_FALSE(site.loads.poll_ready());
  CHECK(site.history(kRingStart, 1'000) == content.substr(0, 1'000));
}

TEST_CASE("many loads do not occupy the disk at once, and all arrive") {
  Receiver site;
  const auto [content, name] = site.stored(kLoadBytes);
  std::vector<Load> many;
  for (std::uint64_t i = 0; i < kMaxLoadedBytes / kLoadBytes; ++i)
    many.push_back(load_of(name, 0, kLoadBytes, kRingStart + i * kLoadBytes));
  REQUIRE(site.bring(4, many).value() == Brought::waits);
  CHECK(site.store.under_way == 8);
  site.disk.settle();
  CHECK(site.store.most_under_way == 8);
  CHECK(site.loads.poll_ready() == 4u);
  for (const Load& load : many) CHECK((site.history(load.ring_offset, kLoadBytes) == content));
}

TEST_CASE("a peer that names loads, and reads no answers, is cut off") {
  Receiver site;
  const SegmentName nothing{.writer = site_of(2), .reader = site_of(1), .length = 50'000};
  std::size_t blocks = 0;
  const std::vector<Load> full(kMaxLoads, load_of(nothing, 0, 1, kRingStart));
  while (blocks < 1'000 && site.bring(blocks, full).has_value()) ++blocks;
  CHECK(blocks > 100);
  CHECK(blocks < 300);
}

TEST_CASE("loads before there is a history, and answers to others' loads, are not taken") {
  Receiver site;
  CHECK_FALSE(site.loads.on_loaded(12'345, std::nullopt));
  BlockDecoder without{64u << 20};
  TwinLoads loads(site.peers, site.own, without);
  Buffer names, encoded;
  write_load({.segment = 1, .offset = 0, .length = 1, .ring_offset = kRingStart}, names);
  const BlockHeader header{.codec = kInRing | kLoads, .plain_bytes = 1, .ring_offset = kRingStart + 1};
  write_encoded_fields(header.codec, {.loads = names}, encoded);
  encoded.push_back(std::byte{'x'});
  CHECK_FALSE(loads.bring(4, header, encoded).has_value());
}

}  // namespace
}  // namespace longhaul::reduction
