// SPDX-License-Identifier: Apache-2.0
// Two sites with disks: what was sent in one session costs next to nothing in the next, whatever happens to
// either disk meanwhile.
#include "codecs/reduction/disk_hooks.h"
#include "tests/codecs/reduction/disk_sites.h"

namespace longhaul::reduction {
namespace {

TEST_CASE("the next session finds on disk what an earlier session sent") {
  Sites sites;
  Traffic traffic(1);
  std::string file = traffic.noise(12 << 20);
  {
    auto twins = sites.session();
    send(*twins, 0, kStream, file);
    CHECK(twins->wire_bytes(0) > file.size());
    twins->rest();
  }
  CHECK(sites.here.list().size() >= 3);
  CHECK(sites.here.list() == sites.there.list());
  {
    auto twins = sites.session();
    send(*twins, 0, kStream, file);
    CHECK(twins->delivered_bytes(0) == file.size());
    CHECK(twins->wire_bytes(0) < file.size() / 50);
    auto counters = twins->side(0).counters();
    CHECK(counters.encoder.bytes.disk_bytes > file.size() * 9 / 10);
    CHECK(counters.encoder.loaded_bytes >= counters.encoder.bytes.disk_bytes);
    CHECK(twins->side(1).counters().decoder.loaded_bytes > file.size() * 9 / 10);
    CHECK(counters.encoder.needs == 0);
    twins->rest();
  }
  // A repeat is not stored again.
  std::uint64_t stored = 0;
  for (const SegmentName& name : sites.here.list()) stored += name.length;
  CHECK(stored < file.size() * 11 / 10);
  // What came from there goes back as cheaply: the segments are the site's, not the direction's.
  auto twins = sites.session();
  send(*twins, 1, kStream, file);
  CHECK(twins->wire_bytes(1) < file.size() / 50);
}

TEST_CASE("an edited file, and a file embedded in another one, are found as well") {
  Sites sites;
  Traffic traffic(2);
  std::string file = traffic.noise(8 << 20);
  sites.store(file);
  std::string edited = traffic.noise(777) + file;
  for (std::size_t at = 50'000; at < edited.size(); at += 400'000) edited.replace(at, 30, traffic.noise(45));
  auto twins = sites.session();
  send(*twins, 0, kStream, traffic.noise(300'000) + edited + traffic.noise(300'000));
  CHECK(twins->wire_bytes(0) < 600'000 + file.size() / 20);
}

TEST_CASE("a segment that only one side has is never referenced") {
  Sites sites;
  Traffic traffic(3);
  std::string file = traffic.noise(6 << 20);
  sites.store(file);
  for (const SegmentName& name : std::vector(sites.there.list())) sites.there.drop(name);
  auto twins = sites.session();
  send(*twins, 0, kStream, file);
  CHECK(twins->side(0).counters().encoder.loaded_bytes == 0);
  CHECK(twins->side(1).counters().decoder.needs == 0);
  twins->rest();
  // It was sent, and so both have it now, once more on the one side.
  auto again = sites.session();
  send(*again, 0, kStream, file);
  CHECK(again->wire_bytes(0) < file.size() / 50);
}

TEST_CASE("a segment that one side cannot read costs its bytes and nothing else") {
  int side = GENERATE(0, 1);
  Sites sites;
  Traffic traffic(4);
  std::string file = traffic.noise(12 << 20);
  sites.store(file);
  cache::MemoryStore& store = side ? sites.there : sites.here;
  auto names = store.list();
  REQUIRE(names.size() >= 3);
  store.damage(names[1]);
  auto twins = sites.session();
  send(*twins, 0, kStream, file);
  twins->rest();
  CHECK(twins->delivered_bytes(0) == file.size());
  CHECK(twins->failed_streams() == 0);
  CHECK(twins->wire_bytes(0) < 9u << 20);
  CHECK_FALSE(twins->over(kStream));
  // What the twin said it cannot bring is not taken for a history that went wrong.
  CHECK(twins->side(0).counters().encoder.restarts == 0);
  CHECK(twins->side(1).counters().decoder.mismatches == 0);
  CHECK(twins->side(1).counters().decoder.needs == 0);
}

TEST_CASE("blocks that depend on a failing disk are requested again, and the history continues") {
  Sites sites;
  Traffic traffic(14);
  std::string file = traffic.noise(12 << 20);
  sites.store(file);
  sites.there.damage(sites.there.list()[1]);
  // So large that the encoder may run ahead with all of it: nothing arrives before it is referred to.
  auto twins = std::make_unique<Twins>(20, 20, sites.here, sites.there, 128);
  twins->meet();
  std::string_view rest = file;
  while (!rest.empty()) {
    twins->write(0, kStream, rest.substr(0, 65'536));
    rest.remove_prefix(std::min<std::size_t>(rest.size(), 65'536));
    while (sites.here.poll()) {
    }
  }
  twins->rest();
  CHECK(twins->delivered_bytes(0) == file.size());
  CHECK(twins->failed_streams() == 0);
  CHECK(twins->side(1).counters().decoder.needs > 0);
  CHECK(twins->side(1).counters().decoder.needs == twins->side(1).counters().decoder.recovered);
  CHECK(twins->side(1).counters().decoder.mismatches == 0);
  CHECK(twins->side(0).counters().encoder.restarts == 0);
}

TEST_CASE("before a session ends all new data is stored on both disks, even small amounts") {
  int ends = GENERATE(0, 1);
  Sites sites;
  Traffic traffic(21);
  std::string up = traffic.noise(700'000), down = traffic.noise(900'000);
  {
    auto twins = sites.session();
    send(*twins, 0, kStream, up);
    send(*twins, 1, kStream, down);
    CHECK(sites.here.list().empty());
    twins->side(ends).finish();
    CHECK_FALSE(twins->side(ends).finished());
    twins->settle();
    CHECK(twins->side(ends).finished());
  }
  CHECK(sites.here.list().size() == 2);
  CHECK(sites.here.list() == sites.there.list());
  auto twins = sites.session();
  send(*twins, 0, kStream, up);
  send(*twins, 1, kStream, down);
  CHECK(twins->wire_bytes(0) + twins->wire_bytes(1) < 200'000);
}

TEST_CASE("a session whose peer has no disk ends at once") {
  cache::MemoryStore store;
  Options options = ring_of(16, 7);
  options.store = &store;
  Reduction side(options);
  while (side.poll_message()) {
  }
  side.finish();
  CHECK(side.finished());
  side.clear();
  CHECK(side.cleared_by_twin() == 0);
}

TEST_CASE("the peer drops the segments that one side clears, except those of other peers") {
  Sites sites;
  Traffic traffic(22);
  std::string file = traffic.noise(6 << 20);
  Slice foreign = Slice::copy_of(as_bytes(traffic.noise(50'000)));
  SegmentName others{.epoch = 5, .first = 65'536, .length = 50'000, .digest = segment_digest({&foreign, 1})};
  others.writer.fill(std::byte{9});
  sites.there.put(others, {foreign}, {});
  auto twins = sites.session();
  send(*twins, 0, kStream, file);
  send(*twins, 1, kStream, traffic.noise(3 << 20));
  twins->rest();
  std::uint64_t held = 0;
  for (const SegmentName& name : sites.there.list()) held += name.length;
  REQUIRE(held > 9u << 20);
  twins->side(0).clear();
  CHECK_FALSE(twins->side(0).cleared_by_twin());
  for (const SegmentName& name : sites.here.list()) sites.here.drop(name);
  twins->settle();
  CHECK(twins->side(0).cleared_by_twin() == held - others.length);
  CHECK(sites.there.list() == std::vector{others});
  CHECK(sites.here.list().empty());
  // It is sent again, and kept again.
  std::uint64_t before = twins->wire_bytes(0);
  send(*twins, 0, kStream, file);
  CHECK(twins->wire_bytes(0) - before > file.size());
  twins->rest();
  CHECK(sites.here.list().size() >= 2);
}

TEST_CASE("if one side has no disk everything else works, and the other writes nothing in vain") {
  cache::MemoryStore store;
  Options with = ring_of(16, 7);
  with.store = &store;
  Reduction side(with);
  // The twin greets, and never says that it has anything.
  while (side.poll_message()) {
  }
  side.on_quiet();
  store.settle();
  CHECK(store.list().empty());
}

TEST_CASE("every byte is right over many sessions with any loss, drop or damage") {
  std::uint64_t seed = GENERATE(11u, 12u, 13u, 14u);
  CAPTURE(seed);
  Sites sites;
  std::mt19937_64 random(seed);
  Traffic traffic(seed);
  std::vector<std::string> files;
  for (int i = 0; i < 4; ++i) files.push_back(traffic.noise(200'000 + random() % 3'000'000));
  std::uint64_t loaded = 0;
  for (int life = 0; life < 8; ++life) {
    auto twins = sites.session();
    twins->resets_are_expected = true;
    std::map<std::uint64_t, std::pair<std::string, std::size_t>> open;
    std::uint64_t next = 1;
    for (int step = 0; step < 300; ++step) {
      if (open.size() < 3) open[next++] = {files[random() % files.size()], 0};
      auto at = std::next(open.begin(), static_cast<std::ptrdiff_t>(random() % open.size()));
      auto& [file, sent] = at->second;
      std::size_t size = std::min<std::size_t>(file.size() - sent, 1 + random() % 65'536);
      twins->write(static_cast<int>(at->first % 2), at->first, std::string_view(file).substr(sent, size));
      sent += size;
      if (random() % 60 == 0) {
        twins->reset(at->first);
        open.erase(at);
      } else if (sent == file.size()) {
        open.erase(at);
      }
      for (std::uint64_t moves = random() % 12; moves > 0; --moves) twins->step();
      if (random() % 50 == 0) twins->side(static_cast<int>(random() % 2)).on_quiet();
      if (random() % 100 == 0) twins->side(static_cast<int>(random() % 2)).finish();
      if (random() % 80 == 0) twins->side(static_cast<int>(random() % 2)).clear();
      if (random() % 40 == 0) {
        cache::MemoryStore& store = random() % 2 ? sites.here : sites.there;
        auto names = store.list();
        if (!names.empty()) {
          const SegmentName& name = names[random() % names.size()];
          random() % 2 ? store.damage(name) : store.drop(name);
        }
      }
    }
    twins->rest();
    loaded += twins->side(0).counters().encoder.loaded_bytes;
  }
  CHECK(loaded > 0);
}

TEST_CASE("what a peer may say about its disk is bounded, and invalid messages end the session") {
  cache::MemoryStore store;
  Options options = ring_of(16, 7);
  options.store = &store;
  Reduction side(options);
  auto message = [&](std::initializer_list<int> bytes) {
    Buffer made;
    for (int byte : bytes) made.push_back(std::byte(byte));
    return side.on_message(made).has_value();
  };
  CHECK(message({9}));
  CHECK(message({9, 1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK_FALSE(message({9, 1, 2, 3}));
  CHECK_FALSE(message({10, 1, 2, 3}));
  CHECK_FALSE(message({11}));
  CHECK_FALSE(message({11, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  // Shorter than any segment is.
  CHECK_FALSE(message({11, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  // About a history that is not here.
  CHECK(message({11, 1, 0x80, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  CHECK(message({12, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1}));
  CHECK_FALSE(message({12, 1, 2, 3, 4, 5, 6, 7, 8, 1}));
  CHECK(message({200, 1, 2}));
  CHECK(message({13}));
  CHECK(message({15}));
  // Answers without a request.
  CHECK_FALSE(message({14}));
  CHECK_FALSE(message({16, 0}));
  CHECK_FALSE(message({16}));
}

TEST_CASE("hooks are found at any position of the content") {
  Traffic traffic(9);
  std::string content = traffic.noise(300'000);
  auto hooks_of = [](const std::string& bytes) {
    std::string padded = bytes + std::string(256, 'x');
    std::vector<Hook> hooks;
    find_hooks(as_bytes(padded).first(bytes.size()), hooks);
    return hooks;
  };
  auto here = hooks_of(content);
  CHECK(here.size() > 300'000 / 4096 / 2);
  CHECK(here.size() < 300'000 / 4096 * 2);
  std::size_t before = 12'345, same = 0;
  std::set<std::pair<std::uint64_t, std::uint32_t>> there;
  for (const Hook& hook : hooks_of(traffic.noise(before) + content))
    there.insert({hook.fingerprint, hook.offset});
  for (const Hook& hook : here) same += there.contains({hook.fingerprint, hook.offset + before});
  CHECK(same + 3 >= here.size());
  CHECK(hooks_of(std::string(100'000, '\0')).empty());
  CHECK(hooks_of("short").empty());
}

}  // namespace
}  // namespace longhaul::reduction
