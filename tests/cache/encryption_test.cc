// SPDX-License-Identifier: Apache-2.0
// The store's directory in the hands of an attacker with copies of it and without the key, and what remains
// readable when the key is destroyed, lost or replaced.
#include <catch2/catch.hpp>

#include <filesystem>

#include "cache/disk_store.h"
#include "tests/cache/segments.h"
#include "tests/proxy/temporary_folder.h"

namespace longhaul::cache {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Put = reduction::SegmentStore::Put;

// A store whose key lies outside its directory, and what it said.
struct Place {
  TemporaryFolder folder;
  fs::path directory = folder.path() / "dictionary", key = folder.path() / "dictionary.key";
  std::string log;

  DiskStoreOptions options() {
    return {.directory = directory.string(),
            .key_file = key.string(),
            .cap_bytes = kMinCapBytes,
            .log = [this](const std::string& line) { log += line + "\n"; }};
  }
  void fill(std::uint64_t segments) {
    DiskStore store(options());
    store.settle();
    for (std::uint64_t seed = 1; seed <= segments; ++seed) put(store, seed);
    store.settle();
  }
  static Put put(DiskStore& store, std::uint64_t seed) {
    Made a = segment(seed, 100'000);
    return store.put(a.name, a.parts, a.hooks);
  }
  std::string all_bytes() const {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory / "segments"), {}));
  }
};

TEST_CASE("neither the segment files nor the catalogue reveal bytes, names or fingerprints") {
  Place place;
  place.fill(5);
  const std::string all = place.all_bytes();
  REQUIRE(all.size() > 500'000);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Made a = segment(seed, 100'000);
    const std::string_view content = as_text(a.parts[0].bytes());
    for (std::size_t at = 0; at + 16 <= content.size(); at += 5'000)
      CHECK(all.find(content.substr(at, 16)) == std::string::npos);
    CHECK(all.find(as_text(a.name.digest)) == std::string::npos);
    CHECK(all.find(as_text(a.name.writer)) == std::string::npos);
    for (const Hook& hook : a.hooks) {
      Buffer fingerprint;
      ByteWriter(fingerprint).fixed64(hook.fingerprint);
      CHECK(all.find(as_text(fingerprint)) == std::string::npos);
    }
  }
  CHECK(all.find(place.folder.read("dictionary.key")) == std::string::npos);
}

TEST_CASE("clearing destroys the key: earlier copies become unreadable, later segments are kept") {
  Place place;
  place.fill(5);
  const std::string old_key = place.folder.read("dictionary.key");
  fs::copy(place.directory, place.folder.path() / "copy", fs::copy_options::recursive);
  {
    DiskStore store(place.options());
    store.settle();
    REQUIRE(store.list().size() == 5);
    CHECK(store.cleared_key() == ClearedKey::none);
    CHECK(store.clear() == 500'000);
    CHECK(store.list().empty());
    CHECK(store.cleared_key() == ClearedKey::pending);
    CHECK(Place::put(store, 9) == Put::taken);  // under the next key
    store.settle();
    CHECK(store.cleared_key() == ClearedKey::destroyed);
    CHECK(place.folder.read("dictionary.key") != old_key);
    CHECK(store.list().size() == 1);
    CHECK(place.files() == 1);
  }
  for (const auto& entry : fs::directory_iterator(place.folder.path() / "copy/segments"))
    fs::copy(entry.path(),
             place.directory / "segments" /
                 ("00000000000000f" + entry.path().string().substr(entry.path().string().size() - 1)));
  CHECK(place.files() == 6);
  DiskStore store(place.options());
  store.settle();
  CHECK(place.files() == 1);
  REQUIRE(store.list().size() == 1);
  CHECK(seed_of(store.list()[0]) == 9);
}

TEST_CASE("clearing leaves nothing, even while the directory is being read and puts are queued") {
  Place place;
  place.fill(20);
  DiskStore store(place.options());
  Recorder recorder;
  store.attach(recorder);
  SECTION("before anything was read") {}
  SECTION("in the middle") { store.poll(); }
  SECTION("with puts in the queue") {
    store.settle();
    for (std::uint64_t seed = 30; seed < 35; ++seed) CHECK(Place::put(store, seed) == Put::taken);
  }
  store.clear();
  store.clear();  // again, with the first one still under way
  store.settle();
  CHECK(store.cleared_key() == ClearedKey::destroyed);
  CHECK(store.counters().ready);
  CHECK(store.list().empty());
  CHECK(store.counters().segments == 0);
  CHECK(store.counters().damaged == 0);
  CHECK(place.files() == 0);
  CHECK(Place::put(store, 40) == Put::taken);
  store.settle();
  CHECK(store.list().size() == 1);
  LoadId id = store.load(store.list()[0], 0, 100'000, recorder);
  store.settle();
  CHECK(recorder.loaded[id]);
  store.detach(recorder);
}

TEST_CASE("a missing or different key gives an empty dictionary and no error") {
  Place place;
  place.fill(3);
  SECTION("gone") { fs::remove(place.key); }
  SECTION("another") { place.folder.write("dictionary.key", std::string(32, 'x')); }
  SECTION("another, and the catalogue is lost too") {
    place.folder.write("dictionary.key", std::string(32, 'x'));
    fs::remove_all(place.directory / "catalogue");
  }
  DiskStore store(place.options());
  store.settle();
  CHECK(store.counters().ready);
  CHECK(store.list().empty());
  CHECK(place.files() == 0);
  CHECK_THAT(place.log, Catch::Contains("encrypted with another key"));
  CHECK(Place::put(store, 1) == Put::taken);
  store.settle();
  CHECK(store.list().size() == 1);
}

TEST_CASE("a store that cannot save its key is not used, logs the reason and retries") {
  Place place;
  place.key = place.folder.path() / "later/dictionary.key";
  DiskStore store(place.options());
  store.settle();
  CHECK_FALSE(store.counters().ready);
  CHECK_THAT(place.log, Catch::Contains("key can be neither read nor created"));
  fs::create_directory(place.folder.path() / "later");
  for (int i = 0; i < 100 && !store.counters().ready; ++i) {
    Place::put(store, 1);
    store.settle();
  }
  CHECK(store.counters().ready);
}

TEST_CASE("a key that cannot be destroyed is logged, and the files are removed nevertheless") {
  Place place;
  place.fill(3);
  DiskStore store(place.options());
  store.settle();
  fs::remove(place.key);
  fs::create_directories(place.key / "inside");  // what unlink() refuses
  store.clear();
  store.settle();
  CHECK(store.cleared_key() == ClearedKey::kept);
  CHECK_THAT(place.log, Catch::Contains("key cannot be destroyed"));
  CHECK(place.files() == 0);
}

TEST_CASE("files written by the version without encryption are removed at the first start") {
  Place place;
  fs::create_directories(place.directory / "segments");
  std::string old("LHSEG\0\0\1", 8);
  old += std::string(300, 'p');
  place.folder.write("dictionary/segments/0000000000000001", old);
  DiskStore store(place.options());
  store.settle();
  CHECK(store.counters().ready);
  CHECK(place.files() == 0);
}

}  // namespace
}  // namespace longhaul::cache
