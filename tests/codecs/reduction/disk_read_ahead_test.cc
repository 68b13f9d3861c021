// SPDX-License-Identifier: Apache-2.0
// How a stream reads ahead on disk: what it reads, what that may cost others, and what becomes of it when the
// stream goes no farther.
#include "tests/codecs/reduction/disk_sites.h"

namespace longhaul::reduction {
namespace {

TEST_CASE("small segments are read ahead with at most as many loads as one block may reference") {
  Sites sites;
  Traffic traffic(11);
  std::string file;
  {
    auto twins = sites.session();
    for (int i = 0; i < 200; ++i) {
      const std::string piece = traffic.noise(40'000);
      send(*twins, 0, kStream, piece);
      twins->rest();  // each pause makes a segment
      file += piece;
    }
  }
  REQUIRE(sites.here.list().size() > 2 * kMaxLoads);
  auto twins =
      sites.session(128);  // reads 4 MiB ahead, and all of it comes between the first block and the second
  send(*twins, 0, kStream, file);
  CHECK(twins->delivered_bytes(0) == file.size());
  CHECK(twins->wire_bytes(0) < file.size() / 10);
  CHECK(twins->side(0).counters().encoder.needs == 0);
}

TEST_CASE("content that is in memory is not loaded from disk") {
  Sites sites;
  Traffic traffic(9);
  // Pieces that come again here and there, too few of them for what goes on behind each to be of use.
  std::string memory = traffic.noise(6 << 20);
  auto twins = sites.session();
  send(*twins, 0, kStream, memory);
  twins->rest();
  REQUIRE(twins->side(0).counters().common_segments > 0);
  std::string other;
  for (std::size_t at = 0; at + 20'000 < memory.size(); at += 100'000)
    other += traffic.noise(45'000) + memory.substr(at, 20'000);
  send(*twins, 0, kStream, other);
  CHECK(twins->side(0).counters().encoder.loaded_bytes == 0);
  CHECK(twins->side(0).counters().encoder.bytes.copied_bytes > other.size() / 4);
}

TEST_CASE("data read ahead for an ended stream does not hide content that is in memory") {
  Sites sites;
  Traffic traffic(12);
  const std::string front = traffic.noise(65'536), back = traffic.noise(3 << 20);
  sites.store(front + back);
  auto twins = sites.session(128);  // reads 4 MiB ahead
  send(*twins, 0, kStream, back);
  // The front's one block makes the tier read all of the back again, without a reader.
  const std::uint64_t loaded = twins->side(0).counters().encoder.loaded_bytes;
  send(*twins, 0, kStream + 4, front);
  twins->close(kStream + 4);
  twins->settle();
  const std::uint64_t before = twins->wire_bytes(0);
  send(*twins, 0, kStream + 8, back);
  CHECK(twins->wire_bytes(0) - before < back.size() / 50);
  CHECK(twins->side(0).counters().encoder.loaded_bytes == loaded);
}

TEST_CASE("loads that wait for their stream's blocks are bounded, and dropped when idle or without a disk") {
  Sites sites;
  Traffic traffic(14);
  std::vector<std::string> files;
  {
    auto twins = sites.session(64);
    for (int i = 0; i < 12; ++i) {
      files.push_back(traffic.noise(2 << 20));
      send(*twins, 0, kStream, files.back());
      twins->rest();
    }
  }
  auto twins = sites.session(64);
  const auto of_history = [&] { return twins->side(0).counters().encoder.ring_filled_bytes; };
  const std::uint64_t index = twins->side(0).memory_bytes() - of_history();
  const auto waiting = [&] { return twins->side(0).memory_bytes() - of_history() - index; };
  // One block of each, and its stream stays: later data is read without a reader so far.
  std::uint64_t stream = kStream;
  for (const std::string& file : files)
    send(*twins, 0, stream += 4, std::string_view(file).substr(0, 65'536));
  CHECK(waiting() > (4u << 20));
  CHECK(waiting() <= (64u << 20) / 8 + (16u << 20));  // the index grows, too
  const std::uint64_t before = waiting();
  // A stream that sends on is served although others that do not were first; one whose disk was switched off
  // does without.
  std::uint64_t wire = twins->wire_bytes(0);
  send(*twins, 0, kStream + 4, std::string_view(files[0]).substr(65'536));
  CHECK(twins->wire_bytes(0) - wire < 200'000);
  twins->write(0, kStream + 8, std::string_view(files[1]).substr(65'536, 65'536), {.dedup_disk = false});
  twins->settle();
  CHECK(waiting() + (2u << 20) < before);
  twins->side(0).on_quiet();
  CHECK(waiting() + (4u << 20) < before);
  // And is found again when it goes on.
  wire = twins->wire_bytes(0);
  send(*twins, 0, kStream + 12, std::string_view(files[2]).substr(65'536));
  CHECK(twins->wire_bytes(0) - wire < 200'000);
}

TEST_CASE("data loaded for a stream that was reset is found by other streams") {
  Sites sites;
  Traffic traffic(13);
  const std::string front = traffic.noise(65'536), back = traffic.noise(3 << 20);
  sites.store(front + back);
  auto twins = sites.session(128);  // reads 4 MiB ahead
  const bool in_memory = GENERATE(true, false);
  if (in_memory) send(*twins, 0, kStream, back);
  // The second block names all of the back, and the twin never sees it.
  const std::uint64_t stream = kStream + 4;
  send(*twins, 0, stream, front);
  twins->hold(0, stream);
  const std::uint64_t loaded = twins->side(0).counters().encoder.loaded_bytes;
  send(*twins, 0, stream, back.substr(0, 65'536));
  REQUIRE(twins->side(0).counters().encoder.loaded_bytes - loaded > back.size() * 9 / 10);
  twins->reset(stream);
  twins->settle();
  const std::uint64_t before = twins->wire_bytes(0);
  send(*twins, 0, kStream + 8, back);
  CHECK(twins->wire_bytes(0) - before < (in_memory ? back.size() / 50 : 100'000));
}

TEST_CASE("reading continues after a part that was a repeat when stored and is therefore missing") {
  Sites sites;
  Traffic traffic(8);
  std::string first = traffic.noise(3 << 20), second = traffic.noise(3 << 20);
  // The middle is no segment of its own: between the two there is a hole of 3 MiB.
  std::string file = first + first + second;
  sites.store(file);
  auto twins = sites.session();
  send(*twins, 0, kStream, file);
  // The one block that found where to begin, and no second one.
  CHECK(twins->wire_bytes(0) < 100'000);
}

}  // namespace
}  // namespace longhaul::reduction
