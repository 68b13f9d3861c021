// SPDX-License-Identifier: Apache-2.0
// A process that uses a store, for tests that kill it or fill its disk. Leaves judging what is there to the
// test that started it, but for the full disk, which no other process can see.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cache/disk_store.h"
#include "tests/cache/segments.h"

using namespace longhaul;
using namespace longhaul::cache;
using namespace longhaul::cache::test;

namespace {

// "stored SEED" for each segment, when the store has said so.
struct Teller final : reduction::SegmentListener {
  void on_stored(const SegmentName& name) override {
    std::printf("stored %llu\n", static_cast<unsigned long long>(seed_of(name)));
    std::fflush(stdout);
  }
  void on_dropped(const SegmentName&) override {}
  void on_loaded(LoadId, std::optional<Slice>) override {}
};

// So many segments, and then it waits to be killed.
int write_on(const char* folder, std::uint64_t seed, std::uint64_t count) {
  DiskStore store({.directory = folder, .cap_bytes = 4 * kMinCapBytes});
  Teller teller;
  store.settle();
  store.attach(teller);
  for (std::uint64_t end = seed + count; seed < end;) {
    Made a = segment(seed, static_cast<std::uint32_t>(1 + mixed(seed) % 150'000), 40'000);
    if (store.put(a.name, a.parts, a.hooks) == reduction::SegmentStore::Put::taken) ++seed;
    store.poll();
  }
  store.settle();
  for (;;) pause();
}

#define MUST(condition)                                           \
  if (!(condition)) {                                             \
    std::printf("failed in line %d: %s\n", __LINE__, #condition); \
    return 1;                                                     \
  }

int fill(const char* folder) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", folder, "tmpfs", 0, "size=24m") != 0) {
    std::printf("skipped\n");
    return 0;
  }
  int lines = 0;
  DiskStoreOptions options{.directory = std::string(folder) + "/dictionary",
                           .cap_bytes = 1u << 30,
                           .log = [&](const std::string& line) {
                             ++lines;
                             std::fprintf(stderr, "log: %s\n", line.c_str());
                           }};
  auto whole = [](DiskStore& store, Recorder& recorder) {
    for (const SegmentName& name : store.list()) {
      LoadId id = store.load(name, 0, name.length, recorder);
      store.settle();
      if (!recorder.loaded[id] || !right(name, 0, recorder.loaded[id]->bytes())) return false;
      recorder.loaded.clear();
    }
    return true;
  };
  std::size_t kept = 0;
  {
    DiskStore store(options);
    Recorder recorder;
    store.attach(recorder);
    store.settle();
    std::uint64_t seed = 0;
    auto put = [&] {
      Made a = segment(++seed, 300'000, 65'536);
      store.put(a.name, a.parts, a.hooks);
      store.settle();
    };
    for (int i = 0; i < 300; ++i) put();
    auto counters = store.counters();
    MUST(counters.failed > 100);
    MUST(counters.segments > 50);
    MUST(lines < 6);
    MUST(whole(store, recorder));
    auto names = store.list();
    for (std::size_t i = 0; i < 20; ++i) store.drop(names[i]);
    store.settle();
    std::size_t before = store.list().size();
    for (int i = 0; i < 10; ++i) put();
    MUST(store.list().size() == before + 10);
    kept = store.list().size();
    MUST(whole(store, recorder));
    store.detach(recorder);
  }
  DiskStore store(options);
  Recorder recorder;
  store.attach(recorder);
  store.settle();
  MUST(store.list().size() == kept);
  MUST(whole(store, recorder));
  store.detach(recorder);
  std::printf("passed\n");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::string_view what = count > 1 ? arguments[1] : "";
  if (what == "write" && count == 5)
    return write_on(arguments[2], std::strtoull(arguments[3], nullptr, 10),
                    std::strtoull(arguments[4], nullptr, 10));
  if (what == "fill" && count == 3) return fill(arguments[2]);
  std::fprintf(stderr, "usage: cache_writer write FOLDER SEED COUNT | fill FOLDER\n");
  return 2;
}
