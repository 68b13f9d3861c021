// SPDX-License-Identifier: Apache-2.0
// The contract of every store of segments, checked for each implementation.
#include <catch2/catch.hpp>

#include "cache/disk_store.h"
#include "cache/memory_store.h"
#include "tests/cache/segments.h"
#include "tests/proxy/temporary_folder.h"

namespace longhaul::cache {
namespace {

using namespace test;
using Put = reduction::SegmentStore::Put;

struct InMemory {
  MemoryStore store{kMinCapBytes};
};

struct OnDisk {
  TemporaryFolder folder;
  DiskStore store{{.directory = folder.path().string(), .cap_bytes = kMinCapBytes}};
  OnDisk() { store.settle(); }
};

template <class Store>
std::optional<Slice> load(Store& store, Recorder& recorder, const SegmentName& name, std::uint32_t offset,
                          std::uint32_t size) {
  LoadId id = store.load(name, offset, size, recorder);
  CHECK_FALSE(recorder.loaded.contains(id));
  store.settle();
  REQUIRE(recorder.loaded.contains(id));
  return recorder.loaded[id];
}

TEMPLATE_TEST_CASE("a put segment is reported, listed, found and loaded", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Recorder recorder;
  store.attach(recorder);
  std::uint32_t length = GENERATE(1u, 100u, 65'535u, 65'536u, 65'537u, 300'000u);
  Made a = segment(1, length, GENERATE(0u, 1u << 16, 9'999u));
  CHECK(store.put(a.name, a.parts, a.hooks) == Put::taken);
  CHECK(store.list().empty());
  CHECK(store.put(a.name, a.parts, a.hooks) == Put::present);
  store.settle();
  CHECK(recorder.stored == std::vector{a.name});
  CHECK(store.list() == std::vector{a.name});
  CHECK(store.put(a.name, a.parts, a.hooks) == Put::present);

  for (auto [offset, size] :
       {std::pair{0u, length}, std::pair{length / 2, length - length / 2}, std::pair{length - 1, 1u}}) {
    auto bytes = load(store, recorder, a.name, offset, size);
    REQUIRE(bytes);
    CHECK(bytes->size() == size);
    CHECK(right(a.name, offset, bytes->bytes()));
  }
  std::vector<std::uint64_t> fingerprints{12345};
  for (const Hook& hook : a.hooks) fingerprints.push_back(hook.fingerprint);
  std::vector<HookHit> hits;
  store.find(fingerprints, kLink, hits);
  REQUIRE(hits.size() == a.hooks.size());
  for (std::size_t i = 0; i < hits.size(); ++i) {
    CHECK(hits[i].index == i + 1);
    CHECK(hits[i].name == a.name);
    CHECK(hits[i].offset % reduction::kHookGranule == 0);
    CHECK(hits[i].offset <= a.hooks[i].offset);
    CHECK(a.hooks[i].offset - hits[i].offset < reduction::kHookGranule);
  }
  store.detach(recorder);
}

TEMPLATE_TEST_CASE("a load beyond a segment fails harmlessly", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Recorder recorder;
  store.attach(recorder);
  Made a = segment(1, 1000), b = segment(2, 1000);
  store.put(a.name, a.parts, a.hooks);
  store.settle();
  CHECK_FALSE(load(store, recorder, b.name, 0, 10));
  CHECK_FALSE(load(store, recorder, a.name, 0, 0));
  CHECK_FALSE(load(store, recorder, a.name, 1000, 1));
  CHECK_FALSE(load(store, recorder, a.name, 999, 2));
  CHECK_FALSE(load(store, recorder, a.name, 1, ~0u));
  CHECK(load(store, recorder, a.name, 0, 1000));
  CHECK(recorder.dropped.empty());
  store.detach(recorder);
}

TEMPLATE_TEST_CASE("bytes that do not match their name are not kept", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Recorder recorder;
  store.attach(recorder);
  Made a = segment(1, 100'000), b = segment(2, 100'000), c = segment(3, 99'999);
  CHECK(store.put(a.name, b.parts, a.hooks) == Put::taken);
  CHECK(store.put(b.name, c.parts, b.hooks) == Put::refused);
  CHECK(store.put(b.name, {}, {}) == Put::refused);
  store.settle();
  CHECK(recorder.stored.empty());
  CHECK(store.list().empty());
  CHECK(store.put(a.name, a.parts, a.hooks) == Put::taken);
  store.settle();
  CHECK(recorder.stored == std::vector{a.name});
  store.detach(recorder);
}

TEMPLATE_TEST_CASE("content is found for the links that stored it, and for no other", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Made a = segment(1, 300'000), b = segment(1, 300'000);
  b.name.reader = site(9);
  store.put(a.name, a.parts, a.hooks);
  store.put(b.name, b.parts, b.hooks);
  store.settle();
  auto found = [&](std::vector<reduction::SitePair> links) {
    std::vector<HookHit> hits;
    store.find({&a.hooks[3].fingerprint, 1}, links, hits);
    std::vector<SegmentName> names;
    for (const HookHit& hit : hits) names.push_back(hit.name);
    return as_set(names);
  };
  CHECK(found({a.name.sites()}) == std::set{a.name});
  CHECK(found({b.name.sites()}) == std::set{b.name});
  CHECK(found({{site(8), site(9)}}).empty());
  CHECK(found({}).empty());
  CHECK(found({a.name.sites(), b.name.sites()}) == std::set{a.name, b.name});
  CHECK(as_set(store.list(std::vector{site(7)})) == std::set{a.name, b.name});
  CHECK(store.list(std::vector{site(9)}) == std::vector{b.name});
  CHECK(store.list(std::vector{site(1)}).empty());
}

TEMPLATE_TEST_CASE("a link that stores a lot evicts its own segments, not those of others", "", InMemory,
                   OnDisk) {
  TestType made;
  auto& store = made.store;
  constexpr std::uint32_t kLength = 4 << 20;
  std::vector<SegmentName> others;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Made a = segment(seed, kLength);
    a.name.reader = site(9);
    CHECK(store.put(a.name, a.parts, a.hooks) == Put::taken);
    others.push_back(a.name);
    store.settle();
  }
  for (std::uint64_t seed = 10; seed < 50; ++seed) {
    Made a = segment(seed, kLength);
    CHECK(store.put(a.name, a.parts, a.hooks) == Put::taken);
    store.settle();
  }
  CHECK(as_set(store.list(std::vector{site(9)})) == as_set(others));
  CHECK(store.list(std::vector{site(8)}).size() >= 5);
}

TEMPLATE_TEST_CASE("a dropped segment is reported once and then no longer found", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Recorder recorder;
  store.attach(recorder);
  Made a = segment(1, 70'000), b = segment(2, 70'000);
  store.put(a.name, a.parts, a.hooks);
  store.put(b.name, b.parts, b.hooks);
  store.settle();
  store.drop(a.name);
  CHECK(recorder.dropped == std::vector{a.name});
  store.drop(a.name);
  store.settle();
  CHECK(recorder.dropped == std::vector{a.name});
  CHECK(store.list() == std::vector{b.name});
  CHECK_FALSE(load(store, recorder, a.name, 0, 10));
  std::vector<HookHit> hits;
  store.find(std::vector{a.hooks[3].fingerprint, b.hooks[3].fingerprint}, kLink, hits);
  REQUIRE(hits.size() == 1);
  CHECK(hits[0].name == b.name);
  // It may come back.
  CHECK(store.put(a.name, a.parts, a.hooks) == Put::taken);
  store.settle();
  CHECK(load(store, recorder, a.name, 0, 10));
  store.detach(recorder);
}

TEMPLATE_TEST_CASE("a segment dropped before it was written is never reported", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Recorder recorder;
  store.attach(recorder);
  Made a = segment(1, 70'000);
  store.put(a.name, a.parts, a.hooks);
  store.drop(a.name);
  store.settle();
  CHECK(store.list().empty());
  CHECK(recorder.stored.empty());
  CHECK(recorder.dropped.empty());
  store.detach(recorder);
}

TEMPLATE_TEST_CASE("the least recently used segments are evicted first", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Recorder recorder;
  store.attach(recorder);
  std::vector<SegmentName> names;
  auto put = [&](std::uint64_t seed) {
    Made a = segment(seed, 4 << 20, 1 << 20);
    names.push_back(a.name);
    CHECK(store.put(a.name, a.parts, a.hooks) == Put::taken);
    store.settle();
  };
  for (std::uint64_t seed = 0; seed < 4; ++seed) put(seed);
  REQUIRE(load(store, recorder, names[0], 5, 100));
  for (std::uint64_t seed = 4; seed < 20; ++seed) put(seed);
  // 80 MiB went in, at most 64 are there.
  REQUIRE(recorder.dropped.size() >= 4);
  REQUIRE(recorder.dropped.size() <= 7);
  for (std::size_t i = 0; i < recorder.dropped.size(); ++i) CHECK(recorder.dropped[i] == names[i + 1]);
  CHECK(store.list().size() == 20 - recorder.dropped.size());
  CHECK(load(store, recorder, names[0], 5, 100));
  store.detach(recorder);
}

TEMPLATE_TEST_CASE("a detached listener is no longer called", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Recorder here, gone;
  store.attach(here);
  store.attach(gone);
  Made a = segment(1, 1000);
  store.put(a.name, a.parts, a.hooks);
  store.settle();
  store.load(a.name, 0, 10, gone);
  LoadId id = store.load(a.name, 0, 10, here);
  store.detach(gone);
  store.drop(a.name);
  store.settle();
  CHECK(gone.loaded.empty());
  CHECK(gone.dropped.empty());
  CHECK(here.loaded.contains(id));
  CHECK(here.dropped.size() == 1);
  store.detach(here);
}

// Asks for more while it is being told.
struct Busy final : reduction::SegmentListener {
  Busy(reduction::SegmentStore& in, Made next_one) : store(in), next(std::move(next_one)) {}
  void on_stored(const SegmentName& name) override {
    store.load(name, 0, 1, *this);
    if (name != next.name) store.put(next.name, next.parts, next.hooks);
  }
  void on_dropped(const SegmentName& name) override {
    ++dropped;
    store.drop(name);
  }
  void on_loaded(LoadId, std::optional<Slice> bytes) override {
    if (!bytes) return;
    ++loaded;
    for (const SegmentName& name : store.list(std::vector{site(7)})) store.drop(name);
  }
  reduction::SegmentStore& store;
  Made next;
  int loaded = 0, dropped = 0;
};

TEMPLATE_TEST_CASE("a listener may use the store during a notification", "", InMemory, OnDisk) {
  TestType made;
  auto& store = made.store;
  Busy busy(store, segment(2, 500));
  store.attach(busy);
  Made a = segment(1, 1000);
  store.put(a.name, a.parts, a.hooks);
  store.settle();
  CHECK(store.list().empty());
  CHECK(busy.loaded >= 1);
  CHECK(busy.dropped == 2);
  store.detach(busy);
}

}  // namespace
}  // namespace longhaul::cache
