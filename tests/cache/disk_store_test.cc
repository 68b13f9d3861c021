// SPDX-License-Identifier: Apache-2.0
// The disk store's additions to the contract of a store: restarts, other processes, a cap in bytes, a queue.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "cache/disk_store.h"
#include "tests/cache/segments.h"
#include "tests/proxy/temporary_folder.h"
#include "tests/sweep.h"

extern char** environ;

namespace longhaul::cache {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Put = reduction::SegmentStore::Put;

// All bytes of a directory's files in whole blocks, as the cap counts them.
std::uint64_t bytes_on_disk(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code gone;
  for (auto at = fs::recursive_directory_iterator(folder, gone); at != fs::recursive_directory_iterator();
       at.increment(gone))
    if (at->is_regular_file(gone)) {
      std::uint64_t size = at->file_size(gone);
      if (!gone) bytes += disk_bytes(size);
    }
  return bytes;
}

bool is_right(DiskStore& store, Recorder& recorder, const SegmentName& name) {
  LoadId id = store.load(name, 0, name.length, recorder);
  store.settle();
  return recorder.loaded[id] && right(name, 0, recorder.loaded[id]->bytes());
}

TEST_CASE("stored segments survive a restart and are found by content") {
  TemporaryFolder folder;
  DiskStoreOptions options{.directory = folder.path().string(), .cap_bytes = kMinCapBytes};
  std::vector<Made> made;
  for (std::uint64_t seed = 1; seed <= 30; ++seed)
    made.push_back(segment(seed, static_cast<std::uint32_t>(1 + mixed(seed) % 200'000), 7'777));
  {
    DiskStore store(options);
    store.settle();
    for (const Made& a : made) REQUIRE(store.put(a.name, a.parts, a.hooks) == Put::taken);
  }  // the queue is written before it ends
  DiskStore store(options);
  Recorder recorder;
  store.attach(recorder);
  CHECK(store.list().empty());
  CHECK(store.put(made[0].name, made[0].parts, {}) == Put::refused);  // not before the directory is read
  store.settle();
  CHECK(recorder.stored.size() == 30);
  for (const Made& a : made) {
    CHECK(store.put(a.name, a.parts, a.hooks) == Put::present);
    CHECK(is_right(store, recorder, a.name));
    for (const Hook& hook : a.hooks) {
      std::vector<HookHit> hits;
      store.find({&hook.fingerprint, 1}, kLink, hits);
      REQUIRE(hits.size() == 1);
      CHECK(hits[0].name == a.name);
    }
  }
  store.detach(recorder);
}

TEST_CASE("the order of use survives a restart") {
  TemporaryFolder folder;
  DiskStoreOptions options{.directory = folder.path().string(), .cap_bytes = kMinCapBytes};
  auto put = [](DiskStore& store, std::uint64_t seed) {
    Made a = segment(seed, 4 << 20);
    store.put(a.name, a.parts, a.hooks);
    store.settle();
    return a.name;
  };
  SegmentName second;
  {
    DiskStore store(options);
    Recorder recorder;
    store.attach(recorder);
    store.settle();
    put(store, 1);
    second = put(store, 2);
    put(store, 3);
    CHECK(is_right(store, recorder, second));
    store.detach(recorder);
  }
  DiskStore store(options);
  Recorder recorder;
  store.attach(recorder);
  store.settle();
  for (std::uint64_t seed = 4; recorder.dropped.size() < 3; ++seed) put(store, seed);
  CHECK(seed_of(recorder.dropped[0]) == 1);
  CHECK(seed_of(recorder.dropped[1]) == 3);
  CHECK(seed_of(recorder.dropped[2]) == 4);
  CHECK(is_right(store, recorder, second));
  store.detach(recorder);
}

TEST_CASE("the size on disk never exceeds the cap") {
  TemporaryFolder folder;
  std::uint64_t cap = kMinCapBytes;
  std::uint64_t most = 0;
  std::uint32_t largest = GENERATE(1u << 20, 200'000u);
  Random random{5};
  std::uint64_t seed = 0;
  {
    DiskStore store({.directory = folder.path().string(), .cap_bytes = cap, .queue_bytes = 8 << 20});
    store.settle();
    for (std::uint64_t put = 0; put < 2 * cap;) {
      Made a = segment(++seed, static_cast<std::uint32_t>(1 + random.below(largest)));
      if (store.put(a.name, a.parts, a.hooks) == Put::taken) put += a.name.length;
      while (store.poll()) {
      }
      if (seed % 8 == 0) most = std::max(most, bytes_on_disk(folder.path()));
    }
    store.settle();
    auto counters = store.counters();
    CHECK(counters.disk_bytes <= cap);
    CHECK(counters.made_room > 0);
    // What it says is what is there, but for what RocksDB did since it was last looked at.
    std::uint64_t there = bytes_on_disk(folder.path());
    CHECK(there <= cap);
    CHECK(there + (1 << 20) > counters.disk_bytes);
    CHECK(there < counters.disk_bytes + (1 << 20));
    CHECK(store.list().size() <= cap / (256 << 10));
    if (largest > 500'000) CHECK(there > cap - (12u << 20));  // and the room is used
  }
  CHECK(most <= cap);
  // A smaller cap, of course no smaller than the least, holds from the start on.
  Recorder recorder;
  DiskStore store({.directory = folder.path().string(), .cap_bytes = 1});
  store.attach(recorder);
  store.settle();
  CHECK(bytes_on_disk(folder.path()) <= kMinCapBytes);
  store.detach(recorder);
}

TEST_CASE("with a smaller limit the oldest segments are evicted before listeners see them") {
  TemporaryFolder folder;
  DiskStoreOptions options{.directory = folder.path().string(), .cap_bytes = 2 * kMinCapBytes};
  {
    DiskStore store(options);
    store.settle();
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      Made a = segment(seed, 4 << 20);
      store.put(a.name, a.parts, a.hooks);
      store.settle();
    }
    REQUIRE(store.list().size() == 25);
  }
  options.cap_bytes = kMinCapBytes;
  DiskStore store(options);
  Recorder recorder;
  store.attach(recorder);
  store.settle();
  CHECK(recorder.dropped.empty());
  CHECK(recorder.stored.size() >= 12);
  CHECK(recorder.stored.size() <= 15);
  for (const SegmentName& name : recorder.stored) CHECK(seed_of(name) > 10);
  CHECK(bytes_on_disk(folder.path()) <= kMinCapBytes);
  store.detach(recorder);
}

TEST_CASE("a second store on the same directory is refused with a reason") {
  TemporaryFolder folder;
  DiskStoreOptions options{.directory = folder.path().string(), .cap_bytes = kMinCapBytes};
  auto first = std::make_unique<DiskStore>(options);
  first->settle();
  CHECK_THROWS_WITH(DiskStore(options),
                    Catch::Contains("used by another process (pid " + std::to_string(getpid())));
  CHECK(first->counters().ready);
  first.reset();
  DiskStore second(options);
  second.settle();
  CHECK(second.counters().ready);
}

TEST_CASE("a directory that cannot be created gives an error with its name") {
  TemporaryFolder folder;
  folder.write("file", "not a folder");
  CHECK_THROWS_WITH(DiskStore({.directory = (folder.path() / "file").string(), .cap_bytes = kMinCapBytes}),
                    Catch::Contains("file"));
}

// A disk that waits until it is let go.
struct Gate final : Files {
  Result<void> write(const std::string& path, const FileContent& content) override {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return open; });
    return system_files().write(path, content);
  }
  Result<void> read(const std::string& path, std::uint64_t offset,
                    std::span<const MutableBytes> into) override {
    return system_files().read(path, offset, into);
  }
  Result<void> remove(const std::string& path) override { return system_files().remove(path); }
  Result<std::vector<FileEntry>> list(const std::string& folder) override {
    return system_files().list(folder);
  }
  Result<void> make_folder(const std::string& path) override { return system_files().make_folder(path); }
  void set(bool value) {
    std::lock_guard lock(mutex);
    open = value;
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool open = true;
};

TEST_CASE("a stalled disk blocks no put and no load, and what exceeds the queue is counted") {
  TemporaryFolder folder;
  Gate gate;
  DiskStore store({.directory = folder.path().string(),
                   .cap_bytes = kMinCapBytes,
                   .queue_bytes = 1 << 20,
                   .files = &gate});
  Recorder recorder;
  store.attach(recorder);
  store.settle();
  Made before = segment(100, 5'000);
  store.put(before.name, before.parts, before.hooks);
  store.settle();
  gate.set(false);
  int taken = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Made a = segment(seed, 100'000);
    (store.put(a.name, a.parts, a.hooks) == Put::taken ? taken : refused)++;
  }
  // Three quarters of the queue; the rest is for other links.
  CHECK(taken == 7);
  CHECK(refused == 23);
  CHECK(store.counters().refused == 23);
  CHECK(store.counters().refused_bytes == 2'300'000);
  Made other = segment(50, 100'000);
  other.name.reader = site(9);
  CHECK(store.put(other.name, other.parts, other.hooks) == Put::taken);
  CHECK(store.put(segment(51, 100'000).name, segment(51, 100'000).parts, {}) == Put::refused);
  // Loads have a thread of their own.
  LoadId id = store.load(before.name, 0, 5'000, recorder);
  while (!recorder.loaded.contains(id)) store.poll();
  CHECK(recorder.loaded[id]);
  gate.set(true);
  store.settle();
  CHECK(recorder.stored.size() == 9);
  CHECK(store.counters().queued_bytes == 0);
  store.detach(recorder);
}

TEST_CASE("the owner of the store is woken when results are available") {
  TemporaryFolder folder;
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
  DiskStore store({.directory = folder.path().string(), .cap_bytes = kMinCapBytes, .wake = [&] {
                     std::lock_guard lock(mutex);
                     woken = true;
                     changed.notify_all();
                   }});
  Recorder recorder;
  store.attach(recorder);
  auto wait = [&] {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return woken; }));
    woken = false;
  };
  while (!store.counters().ready) {
    wait();
    while (store.poll()) {
    }
  }
  Made a = segment(1, 5'000);
  store.put(a.name, a.parts, a.hooks);
  while (recorder.stored.empty()) {
    wait();
    while (store.poll()) {
    }
  }
  store.detach(recorder);
}

TEST_CASE("the index takes at most 4 MiB for a GiB") {
  // Without files: the same two structures the store has, filled as 1 GiB would.
  auto index = std::make_unique<HookIndex>();
  Inventory inventory(1 << 30, 4096);
  std::uint64_t hook = 0, most = 0;
  for (std::uint64_t number = 1; number <= (1 << 30) / (256 << 10); ++number) {
    SegmentName name;
    name.first = number;
    name.length = 256 << 10;
    Slot slot = inventory.add(name, number, 270'000, Inventory::State::readable);
    for (std::uint32_t at = 0; at < name.length; at += 4096) index->insert(mixed(++hook), slot, at);
    if (number > 3000) most = std::max<std::uint64_t>(most, index->memory_bytes() + inventory.memory_bytes());
  }
  CHECK(most < 4u << 20);
  std::size_t found = 0;
  std::array<HookIndex::Place, HookIndex::kBucket> places;
  for (std::uint64_t i = 1; i <= hook; ++i) found += index->find(mixed(i), places) > 0;
  CHECK(found > hook * 93 / 100);
}

// The program that writes until it is killed, tests/cache_writer.
struct Child {
  explicit Child(std::vector<std::string> arguments) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    std::vector<char*> argv;
    arguments.insert(arguments.begin(), LONGHAUL_CACHE_WRITER);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    REQUIRE(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output = fdopen(ends[0], "r");
  }
  ~Child() {
    if (pid > 0) end(SIGKILL);
    fclose(output);
  }
  std::string line() {
    char text[256];
    return fgets(text, sizeof text, output) ? text : "";
  }
  int end(int signal) {
    if (signal) kill(pid, signal);
    int status = 0;
    waitpid(pid, &status, 0);
    pid = -1;
    return status;
  }
  pid_t pid = -1;
  FILE* output = nullptr;
};

TEST_CASE("a writer that is killed loses no segment reported as stored, and leaves no invalid file") {
  TemporaryFolder folder;
  Random random{GENERATE(from_range(test::seeds(3)))};
  CAPTURE(random.state);
  std::set<std::uint64_t> told;
  for (int life = 0; life < 6; ++life) {
    {
      Child child({"write", folder.path().string(), std::to_string(1000 * (life + 1)), "60"});
      for (std::uint64_t lines = random.below(40); lines > 0; --lines) {
        std::string line = child.line();
        REQUIRE(line.starts_with("stored "));
        told.insert(std::stoull(line.substr(7)));
      }
      child.end(SIGKILL);
      for (std::string line; !(line = child.line()).empty() && line.back() == '\n';)
        told.insert(std::stoull(line.substr(7)));
    }
    DiskStore store({.directory = folder.path().string(), .cap_bytes = 4 * kMinCapBytes});
    Recorder recorder;
    store.attach(recorder);
    store.settle();
    std::set<std::uint64_t> there;
    for (const SegmentName& name : store.list()) {
      there.insert(seed_of(name));
      CHECK(is_right(store, recorder, name));
    }
    for (std::uint64_t seed : told) CHECK(there.contains(seed));
    store.detach(recorder);
  }
}

TEST_CASE("on a full disk existing segments are served, and new ones are kept when they fit again") {
  TemporaryFolder folder;
  Child child({"fill", folder.path().string()});
  std::string line = child.line();
  if (line.starts_with("skipped")) {
    WARN("no file system of its own could be mounted (not root?)");
    return;
  }
  CHECK(line == "passed\n");
  CHECK(child.end(0) == 0);
}

}  // namespace
}  // namespace longhaul::cache
