// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/shared_history.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

using namespace longhaul;
using namespace longhaul::reduction;

namespace {

constexpr std::uint64_t kStart = 65'536, kRing = 65'536;

// The same, obviously: a mark for every byte.
struct Model {
  struct Byte {
    std::uint64_t stream = 0;  // 0: no block
    bool held = false;
  };
  std::map<std::uint64_t, Byte> bytes;
  std::uint64_t floor = kStart;

  bool may_refer(std::uint64_t stream, std::uint64_t block, std::uint64_t position) const {
    auto byte = bytes.find(position);
    if (byte == bytes.end() || position < floor || position + kRing - kRing / 4 < block) return false;
    return byte->second.held || byte->second.stream == stream;
  }
};

}  // namespace

TEST_CASE("the usable history agrees with a simple model of one flag per byte") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    SharedHistory history(kRing, kStart);
    Model model;
    std::map<std::uint64_t, StreamTrack> tracks;
    std::vector<Interval> unanswered;
    std::uint64_t head = kStart;
    for (int step = 0; step < 600; ++step) {
      std::uint64_t stream = 1 + random() % 4, size = 1 + random() % 900;
      std::uint64_t offset = head;
      if (offset / kRing != (offset + size - 1) / kRing) offset = (offset / kRing + 1) * kRing;
      std::uint64_t oldest = unanswered.empty() ? head : unanswered.front().begin;
      bool admitted = history.admits(offset, size);
      REQUIRE(history.oldest_unanswered() == oldest);
      REQUIRE(admitted == (offset + size - std::min(oldest, offset) <= kRing / 4));
      if (admitted) {
        StreamTrack& track = tracks[stream];
        SharedHistory::Reach reach(history, stream, track, offset);
        for (int probe = 0; probe < 20; ++probe) {
          std::uint64_t back = random() % kRing;
          std::uint64_t position = offset > kStart + back ? offset - back : kStart;
          Interval range = reach(position);
          bool inside = range.begin <= position && position < range.end;
          REQUIRE(inside == model.may_refer(stream, offset, position));
          if (!inside) continue;
          REQUIRE(range.begin / kRing == (range.end - 1) / kRing);
          bool all =
              model.may_refer(stream, offset, range.begin) && model.may_refer(stream, offset, range.end - 1);
          for (int other = 0; all && other < 20; ++other)
            all = model.may_refer(stream, offset, range.begin + random() % range.size());
          REQUIRE(all);
        }
        Interval context = reach.context(500);
        REQUIRE(context.size() <= 500);
        bool all = true;
        for (std::uint64_t p = context.begin; p < context.end; ++p)
          all = all && model.may_refer(stream, offset, p);
        REQUIRE(all);
        history.add(stream, track, offset, size);
        for (std::uint64_t p = offset; p < offset + size; ++p) model.bytes[p] = {stream, false};
        model.bytes.erase(model.bytes.begin(),
                          model.bytes.lower_bound(offset > 2 * kRing ? offset - 2 * kRing : 0));
        head = offset + size;
        unanswered.push_back({offset, head});
      }
      // Answers come for one block or several in a row, mostly for old ones; sometimes twice.
      for (int answers = static_cast<int>(random() % 3); answers > 0 && !unanswered.empty(); --answers) {
        std::size_t which = random() % std::min<std::size_t>(unanswered.size(), 4);
        Interval range = unanswered[which];
        for (std::uint64_t p = range.begin; p < range.end; ++p)
          if (model.bytes.contains(p)) model.bytes[p].held = true;
        unanswered.erase(unanswered.begin() + static_cast<std::ptrdiff_t>(which));
        history.on_held(range);
        if (random() % 4 == 0) history.on_held(range);
      }
      // Half of a block is no answer.
      if (!unanswered.empty() && unanswered.back().size() > 1)
        history.on_held({unanswered.back().begin, unanswered.back().end - 1});
      if (random() % 200 == 0) {
        history.start_over();
        model.floor = head;
        REQUIRE(history.floor() == head);
      }
    }
  }
}

TEST_CASE("blocks of an ended stream delay nothing, and count once they are answered") {
  SharedHistory history(kRing, kStart);
  StreamTrack one, two, three;
  history.add(1, one, kStart, 100);
  history.add(2, two, kStart + 100, 100);
  history.add(1, one, kStart + 200, 100);
  history.abandon(one);
  CHECK(history.oldest_unanswered() == kStart + 100);
  SharedHistory::Reach reach(history, 3, three, kStart + 300);
  CHECK(reach(kStart).size() == 0);
  history.on_held({kStart, kStart + 300});
  CHECK(history.oldest_unanswered() == kStart + 300);
  CHECK(SharedHistory::Reach(history, 3, three, kStart + 300)(kStart + 50) == Interval{kStart, kStart + 300});
}

TEST_CASE("what was loaded from the disk is no context of isolated blocks") {
  SharedHistory history(kRing, kStart);
  StreamTrack track;
  history.add(1, track, kStart, 100);
  history.add(1, track, kStart + 100, 50);
  track.loaded_until = kStart + 150;
  const auto context = [&](SharedHistory::For whom, std::uint64_t most) {
    return SharedHistory::Reach(history, 1, track, history.head(), whom).context(most);
  };
  CHECK(context(SharedHistory::For::own_stream, 1000).size() == 0);
  CHECK(context(SharedHistory::For::all, 1000) == Interval{kStart, kStart + 150});
  history.add(1, track, kStart + 150, 30);
  CHECK(context(SharedHistory::For::own_stream, 1000) == Interval{kStart + 150, kStart + 180});
  CHECK(context(SharedHistory::For::own_stream, 20) == Interval{kStart + 160, kStart + 180});
  CHECK(context(SharedHistory::For::all, 1000) == Interval{kStart, kStart + 180});
}

TEST_CASE("an ended stream pays for its own blocks") {
  SharedHistory history(1u << 30, kStart);
  std::vector<StreamTrack> tracks(1000);
  std::uint64_t offset = kStart;
  // Each has blocks from the first to the last.
  for (int round = 0; round < 30; ++round)
    for (std::size_t i = 0; i < tracks.size(); ++i, offset += 64) history.add(i, tracks[i], offset, 64);
  for (std::size_t i = 1; i < tracks.size(); ++i) history.abandon(tracks[i]);
  CHECK(history.oldest_unanswered() == kStart);
  history.abandon(tracks[0]);
  CHECK(history.oldest_unanswered() == offset);
}

TEST_CASE("when the table of blocks is full, further blocks wait for answers") {
  SharedHistory history(1u << 30, kStart);
  StreamTrack track;
  std::uint64_t offset = kStart;
  while (history.admits(offset, 64)) {
    history.add(1, track, offset, 64);
    offset += 64;
  }
  CHECK(offset == kStart + 64 * SharedHistory::kMaxBlocks);
  history.on_held({kStart, kStart + 6400});
  CHECK(history.admits(offset, 64));
}
