// SPDX-License-Identifier: Apache-2.0
// A disk that fails: at the n-th operation for every n, from the n-th on, in every byte. What was damaged is
// forgotten, the rest serves, and never is a wrong byte given out.
#include <catch2/catch.hpp>

#include <filesystem>

#include "cache/disk_store.h"
#include "tests/cache/faulty.h"
#include "tests/cache/plain_catalogue.h"
#include "tests/cache/segments.h"
#include "tests/proxy/temporary_folder.h"
#include "tests/sweep.h"

namespace longhaul::cache {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Put = reduction::SegmentStore::Put;

// Puts, loads and drops over two lives of the store, and checks all that is given out.
void live(const DiskStoreOptions& options) {
  std::uint64_t seed = 0;
  for (int life = 0; life < 2; ++life) {
    Recorder recorder;
    DiskStore store(options);
    store.attach(recorder);
    store.settle();
    for (int i = 0; i < 4; ++i) {
      Made a = segment(++seed, 70'000);
      store.put(a.name, a.parts, a.hooks);
    }
    store.settle();
    std::map<LoadId, SegmentName> asked;
    for (const SegmentName& name : store.list()) asked[store.load(name, 60'000, 9'000, recorder)] = name;
    store.settle();
    if (auto names = store.list(); !names.empty()) store.drop(names[0]);
    store.settle();
    for (auto& [id, name] : asked) {
      REQUIRE(recorder.loaded.contains(id));
      if (recorder.loaded[id]) CHECK(right(name, 60'000, recorder.loaded[id]->bytes()));
    }
    store.detach(recorder);
  }
}

// What is there is right or is noticed, and a new segment can be put and loaded.
void check_works(const DiskStoreOptions& options) {
  Recorder recorder;
  DiskStore store(options);
  store.attach(recorder);
  store.settle();
  REQUIRE(store.counters().ready);
  CHECK(as_set(store.list()) == as_set(recorder.stored));
  std::map<LoadId, SegmentName> asked;
  for (const SegmentName& name : store.list()) asked[store.load(name, 0, name.length, recorder)] = name;
  store.settle();
  for (auto& [id, name] : asked) {
    REQUIRE(recorder.loaded.contains(id));
    if (recorder.loaded[id])
      CHECK(right(name, 0, recorder.loaded[id]->bytes()));
    else
      CHECK(as_set(recorder.dropped).contains(name));
  }
  Made a = segment(1000, 70'000);
  REQUIRE(store.put(a.name, a.parts, a.hooks) == Put::taken);
  store.settle();
  LoadId id = store.load(a.name, 1, 69'999, recorder);
  store.settle();
  REQUIRE(recorder.loaded[id]);
  CHECK(right(a.name, 1, recorder.loaded[id]->bytes()));
  store.detach(recorder);
}

TEST_CASE("whichever operation fails, the contents are correct and the store continues") {
  Faults faults;
  FaultyFiles files(faults);
  bool to_the_end = GENERATE(false, true);
  faults.error = GENERATE(from_range(test::sweep({28 /* ENOSPC */, 2 /* ENOENT */, 5 /* EIO */})));
  // The faults are before it and what it does is the same: RocksDB itself once.
  const CatalogueOpener catalogue =
      faults.error == 28 && !to_the_end ? CatalogueOpener(open_rocksdb_catalogue) : plain_catalogues();
  int n = 0;
  for (bool fired = true; fired && n < 400; ++n) {
    TemporaryFolder folder;
    CAPTURE(n, faults.error, to_the_end);
    DiskStoreOptions options{.directory = folder.path().string(),
                             .cap_bytes = kMinCapBytes,
                             .files = &files,
                             .open_catalogue = faulty_catalogue(faults, catalogue)};
    faults.let_fail(n, to_the_end ? 1'000'000 : n);
    try {
      live(options);
    } catch (const StoreUnusable&) {
      REQUIRE(faults.failed > 0);  // the directory itself could not be made
    }
    fired = faults.failed > 0;
    faults.let_fail(-1, -1);
    check_works(options);
  }
  CHECK(n > 30);  // so many operations there are, and each one has failed
  CHECK(n < 400);
}

// Copies of one directory with three segments, each damaged in another way.
class Damaged {
 public:
  Damaged() {
    DiskStore store({.directory = original().string(), .cap_bytes = kMinCapBytes});
    store.settle();
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Made a = segment(seed, 3'000);
      store.put(a.name, a.parts, a.hooks);
    }
    store.settle();
  }

  fs::path original() const { return folder_.path() / "original"; }
  std::vector<fs::path> files(const char* under) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(original() / under))
      if (entry.is_regular_file()) found.push_back(fs::relative(entry.path(), original()));
    return found;
  }
  // Damages a copy, and checks that at least so many of the three are still there and right.
  template <class Damage>
  void check(const fs::path& file, std::size_t survivors, Damage&& damage) const {
    fs::path copy = folder_.path() / "copy";
    fs::remove_all(copy);
    fs::copy(original(), copy, fs::copy_options::recursive);
    damage(copy / file);
    Recorder recorder;
    {
      DiskStore store({.directory = copy.string(), .cap_bytes = kMinCapBytes});
      store.attach(recorder);
      store.settle();
      std::map<LoadId, SegmentName> asked;
      for (const SegmentName& name : store.list()) asked[store.load(name, 0, name.length, recorder)] = name;
      store.settle();
      for (auto& [id, name] : asked)
        if (recorder.loaded[id]) CHECK(right(name, 0, recorder.loaded[id]->bytes()));
      CHECK(store.list().size() >= survivors);
      store.detach(recorder);
    }
    check_works({.directory = copy.string(), .cap_bytes = kMinCapBytes});
  }

 private:
  TemporaryFolder folder_;
};

void flip(const fs::path& path, std::uint64_t bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  char byte = static_cast<char>(file.get());
  byte = static_cast<char>(byte ^ 1 << bit % 8);
  file.seekp(static_cast<std::streamoff>(bit / 8));
  file.put(byte);
}

TEST_CASE("a flipped bit anywhere in a segment costs that segment at most") {
  Damaged damaged;
  fs::path file = damaged.files("segments").at(1);
  std::uint64_t bits = fs::file_size(damaged.original() / file) * 8;
  Random random{77};
  for (int i = test::whole_sweeps() ? 0 : 12; i < (test::whole_sweeps() ? 60 : 28); ++i) {
    std::uint64_t bit = i < 20 ? random.below(128 * 8) : random.below(bits);
    CAPTURE(bit);
    damaged.check(file, 2, [&](const fs::path& path) { flip(path, bit); });
  }
}

TEST_CASE("a flipped bit anywhere in the catalogue costs nothing") {
  Damaged damaged;
  Random random{78};
  for (const fs::path& file : damaged.files("catalogue")) {
    std::uint64_t bits = fs::file_size(damaged.original() / file) * 8;
    for (int i = test::whole_sweeps() ? 0 : 8; i < 12 && bits > 0; ++i) {
      std::uint64_t bit = random.below(bits);
      CAPTURE(file, bit);
      damaged.check(file, 3, [&](const fs::path& path) { flip(path, bit); });
    }
  }
}

TEST_CASE("missing, empty or truncated files lose only their own contents") {
  Damaged damaged;
  for (const char* under : {"segments", "catalogue"})
    for (const fs::path& file : damaged.files(under)) {
      std::size_t survivors = file.string().starts_with("segments") ? 2 : 3;
      CAPTURE(file);
      damaged.check(file, survivors, [](const fs::path& path) { fs::remove(path); });
      std::uint64_t size = fs::file_size(damaged.original() / file);
      for (std::uint64_t cut : {std::uint64_t{0}, size / 3, size - 1})
        if (size > 0)
          damaged.check(file, survivors, [&](const fs::path& path) { fs::resize_file(path, cut); });
      damaged.check(file, survivors,
                    [](const fs::path& path) { std::ofstream(path, std::ios::app) << "more"; });
    }
  damaged.check("catalogue", 3, [](const fs::path& path) { fs::remove_all(path); });
  damaged.check("segments", 0, [](const fs::path& path) { fs::remove_all(path); });
  damaged.check("", 0, [](const fs::path& path) { fs::remove_all(path); });
}

TEST_CASE("a directory that disappears during use is created again") {
  TemporaryFolder folder;
  fs::path path = folder.path() / "dictionary";
  const char* part = GENERATE("", "segments", "catalogue");
  CAPTURE(part);
  std::vector<std::string> lines;
  DiskStore store({.directory = path.string(),
                   .cap_bytes = kMinCapBytes,
                   .log = [&](const std::string& line) { lines.push_back(line); }});
  store.settle();
  Recorder recorder;
  store.attach(recorder);
  auto put = [&](std::uint64_t seed) {
    Made a = segment(seed, 10'000);
    auto answer = store.put(a.name, a.parts, a.hooks);
    store.settle();
    return answer;
  };
  for (std::uint64_t seed = 1; seed <= 5; ++seed) put(seed);
  REQUIRE(store.list().size() == 5);
  fs::remove_all(path / part);
  if (std::string_view(part) != "catalogue") {
    SegmentName first = store.list()[0];
    LoadId id = store.load(first, 0, 100, recorder);
    store.settle();
    CHECK_FALSE(recorder.loaded[id]);
    CHECK(recorder.dropped == std::vector{first});
  }
  CHECK(put(6) == Put::taken);
  CHECK(put(7) == Put::taken);
  for (const SegmentName& name : store.list()) {
    LoadId id = store.load(name, 0, name.length, recorder);
    store.settle();
    CHECK(recorder.loaded[id]);
  }
  std::size_t there = store.list().size();
  CHECK(there == (std::string_view(part) == "catalogue" ? 7 : 1));
  store.detach(recorder);
}

TEST_CASE("an unreadable segment is logged once") {
  TemporaryFolder folder;
  std::vector<std::string> lines;
  DiskStore store({.directory = folder.path().string(),
                   .cap_bytes = kMinCapBytes,
                   .log = [&](const std::string& line) { lines.push_back(line); }});
  store.settle();
  Recorder recorder;
  store.attach(recorder);
  Made a = segment(1, 200'000);
  store.put(a.name, a.parts, a.hooks);
  store.settle();
  flip(folder.path() / "segments/0000000000000001", 8 * 150'000);
  LoadId sound = store.load(a.name, 0, 100'000, recorder);  // two pieces before the damaged one
  LoadId damaged = store.load(a.name, 100'000, 100'000, recorder);
  store.settle();
  CHECK(recorder.loaded[sound]);
  CHECK_FALSE(recorder.loaded[damaged]);
  CHECK(recorder.dropped == std::vector{a.name});
  CHECK(lines.size() == 1);
  CHECK_FALSE(fs::exists(folder.path() / "segments/0000000000000001"));
  CHECK(store.counters().damaged == 1);
  store.detach(recorder);
}

}  // namespace
}  // namespace longhaul::cache
