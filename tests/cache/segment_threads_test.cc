// SPDX-License-Identifier: Apache-2.0
#include "cache/segment_threads.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "cache/segment_file.h"
#include "tests/cache/plain_catalogue.h"
#include "tests/cache/segments.h"
#include "tests/proxy/temporary_folder.h"

namespace longhaul::cache {
namespace {

using namespace test;

Record record_of(const Made& made, std::uint64_t number) {
  return {.number = number,
          .file_bytes = segment_file_bytes(made.name.length, made.hooks.size()),
          .name = made.name,
          .hooks = made.hooks};
}

// All events until the threads have nothing more to do.
std::vector<SegmentThreads::Event> all_of(SegmentThreads& threads) {
  std::vector<SegmentThreads::Event> events;
  for (;;) {
    const bool idle = !threads.busy();
    const std::size_t before = events.size();
    while (threads.take(3, events)) {
    }
    if (idle && events.size() == before) return events;
    std::this_thread::yield();
  }
}

template <class Kind>
std::vector<Kind> only(std::vector<SegmentThreads::Event>& events) {
  std::vector<Kind> found;
  for (auto& event : events)
    if (auto* kind = std::get_if<Kind>(&event)) found.push_back(std::move(*kind));
  return found;
}

struct Threads {
  SegmentFolder::Options options() const {
    return {.path = folder.path().string(), .open_catalogue = catalogues};
  }
  TemporaryFolder folder;
  CatalogueOpener catalogues = plain_catalogues();
};

}  // namespace

TEST_CASE("a segment that was written is read by another one on the directory, and found at its start") {
  Threads test;
  const Made made = segment(5, 70'000, 20'000);
  {
    SegmentThreads threads(test.options(), {});
    threads.start(1);
    threads.write(3, record_of(made, 17), made.parts);
    threads.read(40, 3, 17, made.name, 60'000, 9'000);
    auto events = all_of(threads);
    const auto started = only<SegmentThreads::Started>(events);
    REQUIRE(started.size() == 1);
    CHECK((started[0].start == 1 && started[0].usable));
    const auto written = only<SegmentThreads::Written>(events);
    REQUIRE(written.size() == 1);
    CHECK((written[0].slot == 3 && written[0].result == SegmentFolder::Written::done));
    CHECK(written[0].record.number == 17);
  }
  SegmentThreads threads(test.options(), {});
  threads.start(2);
  auto events = all_of(threads);
  const auto found = only<SegmentThreads::Found>(events);
  REQUIRE(found.size() == 1);
  CHECK((found[0].start == 2 && found[0].record.number == 17 && found[0].record.name == made.name));
  threads.read(41, 9, 17, made.name, 60'000, 9'000);
  events = all_of(threads);
  const auto loaded = only<SegmentThreads::Loaded>(events);
  REQUIRE((loaded.size() == 1 && loaded[0].bytes));
  CHECK((loaded[0].load == 41 && loaded[0].slot == 9 && loaded[0].number == 17));
  CHECK(right(made.name, 60'000, loaded[0].bytes->bytes()));
  threads.remove(17, record_of(made, 17).file_bytes);
  threads.read(42, 9, 17, made.name, 0, 100);
  events = all_of(threads);
  CHECK(only<SegmentThreads::Removed>(events).size() == 1);
}

TEST_CASE("loads that are impossible are answered in their turn") {
  Threads test;
  SegmentThreads threads(test.options(), {});
  threads.start(1);
  const Made made = segment(6, 9'000);
  for (reduction::LoadId load = 1; load <= 9; ++load)
    load % 2 ? threads.refuse(load) : threads.read(load, 1, 5, made.name, 0, 9'000);
  auto events = all_of(threads);
  const auto loaded = only<SegmentThreads::Loaded>(events);
  REQUIRE(loaded.size() == 9);
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    CHECK(loaded[i].load == i + 1);
    CHECK(!loaded[i].bytes);
    CHECK((loaded[i].slot == kNoSlot) == (i % 2 == 0));
  }
}

TEST_CASE("a start waits while nobody fetches what it finds, and the end does not wait for that") {
  Threads test;
  constexpr std::uint64_t kMany = 200;
  {
    SegmentThreads threads(test.options(), {});
    threads.start(1);
    for (std::uint64_t number = 1; number <= kMany; ++number) {
      const Made made = segment(number, 100);
      threads.write(1, record_of(made, number), made.parts);
    }
    auto events = all_of(threads);
    CHECK(only<SegmentThreads::Written>(events).size() == kMany);
  }
  std::atomic<int> woken = 0;
  SegmentThreads threads(test.options(), [&] { ++woken; });
  threads.start(1);
  while (woken == 0) std::this_thread::yield();
  std::vector<SegmentThreads::Event> events;
  threads.take(kMany, events);
  CHECK(events.size() <= 64);
  auto rest = all_of(threads);
  CHECK(only<SegmentThreads::Found>(events).size() + only<SegmentThreads::Found>(rest).size() == kMany);
  threads.start(2);  // left to itself
}

}  // namespace longhaul::cache
