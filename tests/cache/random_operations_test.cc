// SPDX-License-Identifier: Apache-2.0
// The store on the disk against the plain one in memory, on random operations in several lives: they have the
// same segments after each batch, and every byte that is given out is right.
#include <catch2/catch.hpp>

#include <filesystem>

#include "cache/disk_store.h"
#include "cache/memory_store.h"
#include "tests/cache/segments.h"
#include "tests/proxy/temporary_folder.h"
#include "tests/sweep.h"

namespace longhaul::cache {
namespace {

using namespace test;
using Put = reduction::SegmentStore::Put;

class Twins final : reduction::SegmentListener {
 public:
  explicit Twins(std::uint64_t seed) : random_{seed} { open(); }
  ~Twins() override { disk_->detach(*this); }

  void run(std::uint64_t operations) {
    while (operations > 0) {
      std::uint64_t batch = std::min<std::uint64_t>(operations, 1 + random_.below(300));
      operations -= batch;
      while (batch-- > 0) step();
      compare();
      if (random_.once_in(40)) open();
    }
    compare();
  }
  std::uint64_t loaded = 0, damaged = 0, never_stored = 0;

 private:
  static constexpr std::uint64_t kSeeds = 3'000;  // so that names come back

  Made any_segment() {
    std::uint64_t seed = random_.below(kSeeds);
    std::uint64_t length = mixed(seed) % (seed % 50 == 0 ? 400'000 : 12'000);
    return segment(seed, static_cast<std::uint32_t>(1 + length), seed % 3 ? 0 : 5'000);
  }
  std::optional<SegmentName> any_name() {
    auto names = model_.list();
    if (names.empty()) return std::nullopt;
    return names[random_.below(names.size())];
  }

  void step() {
    ++operation_;
    std::uint64_t what = random_.below(100);
    if (what < 35) {
      Made made = any_segment();
      auto answer = disk_->put(made.name, made.parts, made.hooks);
      if (answer == Put::taken) {
        REQUIRE(model_.put(made.name, made.parts, made.hooks) == Put::taken);
        unstored_.insert(made.name);
      }
      if (answer == Put::present) REQUIRE(model_.put(made.name, made.parts, made.hooks) == Put::present);
    } else if (what < 80) {
      auto name = random_.once_in(30) ? any_segment().name : any_name().value_or(any_segment().name);
      auto offset = static_cast<std::uint32_t>(random_.below(name.length));
      auto size = static_cast<std::uint32_t>(1 + random_.below(name.length - offset));
      auto listed = model_.list();
      bool there = std::find(listed.begin(), listed.end(), name) != listed.end();
      asked_[disk_->load(name, offset, size, *this)] = {name, offset, size, there};
    } else if (what < 88) {
      if (auto name = any_name()) {
        disk_->drop(*name);
        model_.drop(*name);
        unstored_.erase(*name);
      }
    } else if (what < 96) {
      look_up();
    } else if (what == 96) {
      damage();
    } else {
      settle();
    }
  }

  // Whatever the plain one finds, the other one finds, but for hints that were pushed out.
  void look_up() {
    Made made = any_segment();
    if (made.hooks.empty()) return;
    std::vector<HookHit> disk, plain;
    std::uint64_t fingerprint = made.hooks[random_.below(made.hooks.size())].fingerprint;
    disk_->find({&fingerprint, 1}, kLink, disk);
    model_.find({&fingerprint, 1}, kLink, plain);
    REQUIRE(disk.size() <= plain.size());
    for (const HookHit& hit : disk) REQUIRE(hit.name == plain[0].name);
    expected_hits_ += plain.size();
    hits_ += disk.size();
  }

  // A file of the directory is cut, or loses its middle; which segment it is comes out when it is read.
  void damage() {
    settle();
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "segments"))
      files.push_back(entry.path());
    if (files.empty()) return;
    const auto& file = files[random_.below(files.size())];
    std::uint64_t size = std::filesystem::file_size(file);
    if (random_.once_in(3)) {
      std::filesystem::remove(file);
    } else {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(static_cast<std::streamoff>(80 + random_.below(size - 80)));
      stream.put('x');
    }
    may_fail_ = true;
    ++damaged;
  }

  void settle() {
    disk_->settle();
    model_.settle();
  }

  void compare_lists() {
    auto disk = as_set(disk_->list()), plain = as_set(model_.list());
    std::string only_disk, only_plain;
    for (const SegmentName& name : disk)
      if (!plain.contains(name)) only_disk += " " + std::to_string(name.first);
    for (const SegmentName& name : plain)
      if (!disk.contains(name)) only_plain += " " + std::to_string(name.first);
    CAPTURE(operation_, may_fail_, log_);
    REQUIRE(only_disk == "");
    REQUIRE(only_plain == "");
  }

  void compare() {
    settle();
    // Segments evicted before they were written: no listener was informed of them.
    for (const SegmentName& name : unstored_) model_.drop(name);
    never_stored += unstored_.size();
    unstored_.clear();
    compare_lists();
    REQUIRE(asked_.empty());
    dropped_.clear();
    if (!may_fail_ || !random_.once_in(4)) return;
    // Reads all of it, so that what is damaged is found out.
    for (const SegmentName& name : model_.list())
      asked_[disk_->load(name, 0, name.length, *this)] = {name, 0, name.length, true};
    settle();
    compare_lists();
    may_fail_ = false;
    dropped_.clear();
  }

  void open() {
    if (disk_) disk_->detach(*this);
    disk_.reset();
    disk_ = std::make_unique<DiskStore>(
        DiskStoreOptions{.directory = folder_.path().string(),
                         .cap_bytes = kMinCapBytes,
                         .queue_bytes = 2u << 20,
                         .log = [this](const std::string& line) { log_ += line + "\n"; }});
    disk_->settle();
    disk_->attach(*this);
    // What was damaged may be found out by its size at the start.
    auto listed = as_set(disk_->list());
    for (const SegmentName& name : model_.list())
      if (!listed.contains(name)) {
        REQUIRE(may_fail_);
        model_.drop(name);
      }
  }

  void on_stored(const SegmentName& name) override { unstored_.erase(name); }
  void on_dropped(const SegmentName& name) override {
    model_.drop(name);
    dropped_.insert(name);
  }
  void on_loaded(LoadId id, std::optional<Slice> bytes) override {
    auto asked = asked_.find(id);
    REQUIRE(asked != asked_.end());
    const Asked& load = asked->second;
    if (bytes) {
      REQUIRE(bytes->size() == load.size);
      REQUIRE(right(load.name, load.offset, bytes->bytes()));
      ++loaded;
    } else if (load.there) {
      // It was there when it was asked for: only one that went meanwhile has no bytes.
      auto listed = disk_->list();
      REQUIRE((may_fail_ || dropped_.contains(load.name) ||
               std::find(listed.begin(), listed.end(), load.name) == listed.end()));
    }
    asked_.erase(asked);
  }

  struct Asked {
    SegmentName name;
    std::uint32_t offset, size;
    bool there;
  };
  TemporaryFolder folder_;
  Random random_;
  MemoryStore model_;
  std::unique_ptr<DiskStore> disk_;
  std::map<LoadId, Asked> asked_;
  std::set<SegmentName> dropped_, unstored_;
  bool may_fail_ = false;
  std::uint64_t operation_ = 0;
  std::string log_;
  std::uint64_t hits_ = 0, expected_hits_ = 0;
};

void run(std::uint64_t seed, std::uint64_t operations) {
  INFO("seed " << seed);
  Twins twins(seed);
  twins.run(operations);
  CHECK(twins.loaded > operations / 10);
  CHECK(twins.damaged > 0);
  CHECK(twins.never_stored < operations / 100);
}

// The million below is for a quiet hour.
TEST_CASE("thousands of random operations match a plain store") {
  run(20261121, test::whole_sweeps() ? 30'000 : 6'000);
}

TEST_CASE("a million random operations match a plain store", "[.]") { run(1, 1'000'000); }

}  // namespace
}  // namespace longhaul::cache
