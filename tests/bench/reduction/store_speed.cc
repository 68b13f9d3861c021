// SPDX-License-Identifier: Apache-2.0
// How fast the disk dictionary's store takes segments and gives them back, beside what the device does with
// plain files: store_speed [FOLDER [MIB]]. Everything is incompressible, so that no device can cheat; what is
// written is removed at the end.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cache/disk_store.h"
#include "tests/cache/segments.h"

using namespace longhaul;
using namespace longhaul::cache;
using namespace longhaul::cache::test;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kSegment = 8 << 20;
constexpr std::uint32_t kLoad = 1 << 20;
constexpr std::size_t kAhead = 8;  // loads at once

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double cpu() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

struct Measure {
  double start = now(), start_cpu = cpu();
  void print(const char* what, std::uint64_t bytes) const {
    double seconds = now() - start, used = cpu() - start_cpu, size = static_cast<double>(bytes);
    std::printf("%-58s %7.0f MB/s, %.2f CPU s/GB\n", what, 1e-6 * size / seconds, 1e9 * used / size);
    std::fflush(stdout);
  }
};

struct Aligned {
  explicit Aligned(std::size_t size) : bytes(static_cast<std::byte*>(std::aligned_alloc(4096, size))) {}
  ~Aligned() { std::free(bytes); }
  std::byte* bytes;
};

void must(bool condition, const char* what) {
  if (condition) return;
  std::perror(what);
  std::exit(1);
}

// What the device and the kernel do with the same bytes and nothing else.
void measure_device(const fs::path& folder, Bytes content, std::uint64_t total) {
  Aligned block(kSegment);
  std::memcpy(block.bytes, content.data(), kSegment);
  std::string path = (folder / "raw").string();
  auto write_all = [&](int flags, const char* what) {
    int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
    must(file >= 0, "open");
    Measure measure;
    for (std::uint64_t at = 0; at < total; at += kSegment)
      must(::write(file, block.bytes, kSegment) == static_cast<ssize_t>(kSegment), "write");
    if (!(flags & O_DIRECT)) measure.print("device: plain file, through the page cache", total);
    fdatasync(file);
    measure.print(what, total);
    ::close(file);
  };
  write_all(0, "device: the same, until it is on the disk");
  write_all(O_DIRECT, "device: plain file, past the page cache (O_DIRECT, 8 MiB)");
  int file = ::open(path.c_str(), O_RDONLY | O_DIRECT);
  must(file >= 0, "open");
  Measure measure;
  for (std::uint64_t at = 0; at < total; at += kLoad)
    must(::pread(file, block.bytes, kLoad, static_cast<off_t>(at)) == static_cast<ssize_t>(kLoad), "read");
  measure.print("device: read, 1 MiB after the other (O_DIRECT)", total);
  ::close(file);
  fs::remove(path);
}

void forget_pages(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    int file = ::open(entry.path().c_str(), O_RDONLY);
    if (file < 0) continue;
    fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

void load_all(DiskStore& store, const std::vector<SegmentName>& names, const char* what) {
  Recorder recorder;
  store.attach(recorder);
  std::size_t asked = 0, answered = 0, missing = 0;
  std::uint64_t bytes = 0;
  Measure measure;
  auto take = [&](std::size_t ahead) {
    while (asked - answered > ahead) {
      store.poll();
      for (auto& [id, loaded] : recorder.loaded) {
        ++answered;
        missing += !loaded;
        bytes += loaded ? loaded->size() : 0;
      }
      recorder.loaded.clear();
    }
  };
  for (const SegmentName& name : names)
    for (std::uint32_t at = 0; at < name.length; at += kLoad) {
      store.load(name, at, kLoad, recorder);
      ++asked;
      take(kAhead);
    }
  take(0);
  measure.print(what, bytes);
  if (missing) std::printf("  %zu loads failed\n", missing);
  store.detach(recorder);
}

}  // namespace

int main(int count, char** arguments) {
  fs::path folder = fs::path(count > 1 ? arguments[1] : "/var/tmp") / "longhaul-store-speed";
  std::uint64_t total = (count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 2048) << 20;
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::printf("%llu MiB in segments of %u MiB under %s\n", static_cast<unsigned long long>(total >> 20),
              kSegment >> 20, folder.c_str());
  // A few contents; the first bytes differ, so every segment is another one. Made before anything is
  // measured.
  std::vector<Made> made;
  Buffer content = content_of(1, kSegment);
  measure_device(folder, content, total);
  for (std::uint64_t seed = 0; seed * kSegment < total; ++seed) {
    std::memcpy(content.data(), &seed, sizeof seed);
    Made a;
    for (std::uint32_t at = 0; at < kSegment; at += 64 << 10)
      if (seed == 0 || at == 0)
        a.parts.push_back(Slice::copy_of(Bytes(content).subspan(at, 64 << 10)));
      else
        a.parts.push_back(made[0].parts[at / (64 << 10)]);
    a.name.first = seed;
    a.name.length = kSegment;
    a.name.digest = reduction::segment_digest(a.parts);
    for (std::uint32_t at = 0; at < kSegment; at += 4096) a.hooks.push_back({mixed(seed << 24 | at), at});
    made.push_back(std::move(a));
  }
  DiskStoreOptions options{.directory = (folder / "dictionary").string(),
                           .cap_bytes = total + total / 4 + kMinCapBytes,
                           .log = [](const std::string& line) { std::printf("  log: %s\n", line.c_str()); }};
  std::vector<SegmentName> names;
  {
    DiskStore store(options);
    store.settle();
    Measure insert;
    for (const Made& a : made) {
      while (store.put(a.name, a.parts, a.hooks) == reduction::SegmentStore::Put::refused) store.poll();
      store.poll();
    }
    store.settle();
    insert.print("store: insert, 2,048 hooks each, through the page cache", total);
    sync();
    insert.print("store: the same, until it is on the disk", total);
    for (const Made& a : made) names.push_back(a.name);
    load_all(store, names, "store: read in order, 1 MiB at once, from the page cache");
    forget_pages(folder);
    load_all(store, names, "store: the same from the disk");

    auto counters = store.counters();
    std::printf(
        "%llu segments, %.1f MiB on disk for %.1f MiB; index %.2f MiB for a GiB\n",
        static_cast<unsigned long long>(counters.segments),
        static_cast<double>(counters.disk_bytes) / (1 << 20), static_cast<double>(total) / (1 << 20),
        static_cast<double>(counters.memory_bytes) / (1 << 20) * (1 << 30) / static_cast<double>(total));
    std::vector<reduction::HookHit> hits;
    std::vector<std::uint64_t> known, unknown;
    for (const Made& a : made)
      for (const Hook& hook : a.hooks) {
        known.push_back(hook.fingerprint);
        unknown.push_back(mixed(~hook.fingerprint));
      }
    double start = now();
    store.find(unknown, kLink, hits);
    double middle = now();
    std::size_t wrong = hits.size();
    store.find(known, kLink, hits);
    double per = 1e9 / static_cast<double>(known.size());
    std::printf("lookup: %.0f ns for nothing (%zu wrong hits in %zu), %.0f ns for a hit (%.1f %% found)\n",
                (middle - start) * per, wrong, unknown.size(), (now() - middle) * per,
                100.0 * static_cast<double>(hits.size() - wrong) / static_cast<double>(known.size()));
  }
  forget_pages(folder);
  double start = now();
  DiskStore store(options);
  store.settle();
  std::printf("start with the directory not in memory: %.0f ms for %zu segments\n", 1e3 * (now() - start),
              store.list().size());
  fs::remove_all(folder);
  return 0;
}
