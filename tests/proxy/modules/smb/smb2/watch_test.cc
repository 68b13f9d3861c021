// SPDX-License-Identifier: Apache-2.0
// Files that are changed beside the SMB server, while the far half holds the only oplock on them.
#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/pair.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

Surroundings strict() {
  Surroundings surroundings = Pair::usual();
  surroundings.features.metadata_relaxed = false;
  return surroundings;
}

unsigned version_read(Client& client, const FileId& file, std::uint64_t offset) {
  const Message& answer = client.wait(client.ask(Command::read, read_request_body(file, offset, 65536)));
  const auto read = parse_read_response(answer.first().bytes).value();
  for (unsigned version = 0; version < 100; ++version)
    if (as_text(read.data) == bytes_of(version, offset, read.data.size())) return version;
  return ~0u;
}

// All that was changed has been told: behind an answer the far half waits a little before it listens again.
void settle(Pair& pair) {
  for (int turn = 0; turn < 3; ++turn) pair.pass(std::chrono::milliseconds(150));
}

}  // namespace

TEST_CASE("data read ahead is dropped when the file is changed directly at the server") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Pair pair(seed, strict());
    pair.server.watches = true;
    pair.server.files["f"] = {1, 1'000'000};
    pair.server.files["other"] = {1, 1'000};
    Client client(pair);
    client.begin();
    const FileId file = client.opened(client.open("f"));
    for (unsigned version = 1; version < 5; ++version) {
      CHECK(version_read(client, file, 0) == version);
      pair.run();
      const std::uint64_t saved = pair.near.counters().round_trips_saved;
      CHECK(version_read(client, file, 65536) == version);
      CHECK(pair.near.counters().round_trips_saved == saved + 1);
      pair.server.change_beside("other");
      pair.server.change_beside("f");
      settle(pair);
      CHECK(version_read(client, file, 131072) == version + 1);
      settle(pair);
    }
    CHECK(pair.far.counters().changes_noticed >= 4);
    client.wait(client.ask(Command::close, close_request_body(file)));
    pair.run();
    CHECK(pair.server.watched_folders() == 1);
    pair.pass(std::chrono::seconds(2));
    CHECK(pair.server.watched_folders() == 0);
    CHECK(pair.server.violations.empty());
    CHECK(client.violations.empty());
  }
}

TEST_CASE("a folder without an open file is no longer watched when another client removes files there") {
  Pair pair(1, strict());
  pair.server.watches = true;
  pair.server.files["f"] = pair.server.files["other"] = {1, 100'000};
  Client client(pair);
  client.begin();
  const FileId file = client.opened(client.open("f"));
  CHECK(version_read(client, file, 0) == 1);
  pair.run();
  pair.server.change_beside("other");
  settle(pair);
  pair.server.remove_beside("other");
  settle(pair);
  CHECK(pair.server.watched_folders() == 1);  // of use to the open file
  client.wait(client.ask(Command::close, close_request_body(file)));
  pair.run();
  CHECK(pair.server.watched_folders() == 1);  // for the next
  pair.server.files["other"] = {1, 100'000};
  pair.server.change_beside("f");
  settle(pair);
  CHECK(pair.server.watched_folders() == 1);
  pair.server.remove_beside("f");
  pair.run();
  CHECK(pair.server.watched_folders() == 0);
  CHECK(pair.server.violations.empty());
  CHECK(client.violations.empty());
}

TEST_CASE("a READ sent after the far half saw a change returns it, in any order of events") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Pair pair(seed, strict());
    pair.server.watches = true;
    pair.server.files["f"] = {1, 3'000'000};
    Client client(pair);
    client.begin();
    const FileId file = client.opened(client.open("f"));
    std::mt19937 random(seed);
    unsigned told = 1, seen = 1;
    for (unsigned turn = 0; turn < 30 && !pair.reset; ++turn) {
      for (auto steps = random() % 40; steps > 0; --steps) pair.step();
      if (random() % 4 == 0) pair.server.change_beside("f");
      if (random() % 3 == 0) {
        settle(pair);
        told = pair.server.version("f");
      }
      const unsigned version = version_read(client, file, 65536 * (random() % 40));
      CHECK(version != ~0u);
      CHECK(version >= told);
      seen = std::max(seen, version);
    }
    CHECK_FALSE(pair.reset);
    CHECK(pair.server.violations.empty());
    CHECK(client.violations.empty());
  }
}

TEST_CASE("a change beside the server is noticed under the client's own oplock, too") {
  Pair pair(1, strict());
  pair.server.watches = true;
  pair.server.files["F"] = {1, 1'000'000};
  Client client(pair);
  client.begin();
  const FileId file = client.opened(client.open("F", OplockLevel::batch));
  CHECK(version_read(client, file, 0) == 1);
  settle(pair);
  const std::uint64_t saved = pair.near.counters().round_trips_saved;
  CHECK(version_read(client, file, 65536) == 1);
  CHECK(pair.near.counters().round_trips_saved == saved + 1);
  pair.server.change_beside("F");
  settle(pair);
  CHECK(version_read(client, file, 131072) == 2);
}

TEST_CASE("a server that reports no changes is asked for the times of a file before a second has passed") {
  // Under our own oplock, and under the client's, also where the folder cannot be watched.
  const auto [oplock, watches] =
      GENERATE(std::pair(OplockLevel::none, true), std::pair(OplockLevel::batch, true),
               std::pair(OplockLevel::batch, false));
  for (unsigned seed = 0; seed < 20; ++seed) {
    Pair pair(seed, strict());
    pair.server.watches = watches;
    pair.server.reports = false;
    pair.server.files["F"] = {1, 1'000'000};
    Client client(pair);
    client.begin();
    const FileId file = client.opened(client.open("F", oplock));
    for (unsigned version = 1; version < 5; ++version) {
      CHECK(version_read(client, file, 0) == version);
      pair.run();
      for (int second = 0; second < 3; ++second) pair.pass(std::chrono::seconds(1));
      const std::uint64_t saved = pair.near.counters().round_trips_saved;
      CHECK(version_read(client, file, 65536) == version);
      CHECK(pair.near.counters().round_trips_saved == saved + 1);
      pair.server.change_beside("F");
      pair.pass(std::chrono::seconds(1));
      CHECK(version_read(client, file, 131072) == version + 1);
    }
    CHECK(pair.far.counters().changes_noticed == 4);
    client.wait(client.ask(Command::close, close_request_body(file)));
    pair.run();
    const std::size_t looks = pair.server.looks;
    CHECK(looks >= 16);
    for (int second = 0; second < 3; ++second) pair.pass(std::chrono::seconds(1));
    CHECK(pair.server.looks == looks);
    CHECK(pair.server.violations.empty());
    CHECK(client.violations.empty());
  }
}

TEST_CASE("however many files are read, none shows what a server that reports nothing had a second ago") {
  constexpr int kFiles = 150;
  const auto oplock = GENERATE(OplockLevel::none, OplockLevel::batch);
  Pair pair(1, strict());
  pair.server.watches = true;
  pair.server.reports = false;
  for (int i = 0; i < kFiles; ++i) pair.server.files["F" + std::to_string(i)] = {1, 200'000};
  Client client(pair);
  client.begin();
  std::vector<FileId> files;
  for (int i = 0; i < kFiles; ++i)
    files.push_back(client.opened(client.open("F" + std::to_string(i), oplock)));
  for (unsigned version = 1; version < 4; ++version) {
    for (const FileId& file : files) CHECK(version_read(client, file, 0) == version);
    pair.run();
    for (int i = 0; i < kFiles; ++i) pair.server.change_beside("F" + std::to_string(i));
    const std::size_t looks = pair.server.looks;
    for (int i = 0; i < 250; ++i) pair.pass(std::chrono::milliseconds(4));
    CHECK(pair.server.looks - looks <= 2 * 64);
    for (const FileId& file : files) CHECK(version_read(client, file, 65536) == version + 1);
  }
  CHECK(pair.server.violations.empty());
  CHECK(client.violations.empty());
}

TEST_CASE("a file that the client does not use is looked at no more, and nothing of it is kept") {
  const auto oplock = GENERATE(OplockLevel::none, OplockLevel::batch);
  Pair pair(1, strict());
  pair.server.watches = true;
  pair.server.reports = false;
  pair.server.files["F"] = {1, 1'000'000};
  Client client(pair);
  client.begin();
  const FileId file = client.opened(client.open("F", oplock));
  CHECK(version_read(client, file, 0) == 1);
  for (int second = 0; second < 12; ++second) pair.pass(std::chrono::seconds(1));
  const std::size_t looks = pair.server.looks;
  for (int second = 0; second < 5; ++second) pair.pass(std::chrono::seconds(1));
  CHECK(pair.server.looks == looks);
  CHECK(pair.far.counters().changes_noticed == 0);
  pair.server.change_beside("F");
  CHECK(version_read(client, file, 65536) == 2);
  pair.run();
  // Used again, it is looked at again.
  pair.server.change_beside("F");
  for (int second = 0; second < 2; ++second) pair.pass(std::chrono::seconds(1));
  CHECK(pair.server.looks > looks);
  CHECK(version_read(client, file, 131072) == 3);
}

TEST_CASE("a file whose oplock is being broken is not looked at, and nothing of it is kept") {
  Pair pair(1, strict());
  pair.server.watches = true;
  pair.server.reports = false;
  pair.server.files["F"] = {1, 1'000'000};
  Client client(pair);
  client.begin();
  const FileId file = client.opened(client.open("F", OplockLevel::batch));
  CHECK(version_read(client, file, 0) == 1);
  pair.pass(std::chrono::seconds(1));
  const std::size_t looks = pair.server.looks;
  CHECK(looks > 0);
  pair.server.write_from_outside("F");
  pair.run();
  REQUIRE(client.breaks.size() == 1);
  for (int second = 0; second < 5; ++second) pair.pass(std::chrono::seconds(1));
  CHECK(pair.server.looks == looks);
  // A change beside the server is seen all the same.
  pair.server.change_beside("F");
  CHECK(version_read(client, file, 65536) == 2);
  CHECK(pair.server.violations.empty());
  CHECK(client.violations.empty());
}

TEST_CASE("a client that was silent for long is answered, and sees what changed meanwhile") {
  // The client's ids hold the server's window: ours, which it asks for with each look, use up the rest.
  constexpr int kFiles = 5;
  for (std::size_t most_ids = 100; most_ids < 104; ++most_ids) {
    INFO(most_ids);
    Pair pair(1, strict());
    pair.server.dialect = Dialect::smb_3_0;
    pair.server.watches = true;
    pair.server.reports = false;
    pair.server.most_ids = most_ids;
    for (int i = 0; i < kFiles; ++i) pair.server.files["F" + std::to_string(i)] = {1, 100'000};
    Client client(pair);
    client.begin();
    while (client.credits() < 64) client.wait(client.ask(Command::echo, empty_body()));
    std::vector<FileId> files;
    for (int i = 0; i < kFiles; ++i) files.push_back(client.opened(client.open("F" + std::to_string(i))));
    for (const FileId& file : files) CHECK(version_read(client, file, 0) == 1);
    for (int second = 0; second < 9; ++second) pair.pass(std::chrono::seconds(1));
    const std::size_t looks = pair.server.looks;
    CHECK(looks < 40);
    for (int i = 0; i < kFiles; ++i) pair.server.change_beside("F" + std::to_string(i));
    for (int second = 0; second < 3; ++second) pair.pass(std::chrono::seconds(1));
    CHECK(pair.server.looks == looks);
    for (const FileId& file : files) CHECK(version_read(client, file, 65536) == 2);
    // What it says of the file waits for the CLOSE of a look.
    CHECK_NOTHROW(client.opened(client.open("F0")));
    client.wait(client.ask(Command::close, close_request_body(files[0])));
    CHECK(pair.server.violations.empty());
    CHECK(client.violations.empty());
  }
}

TEST_CASE("nothing is read ahead under our own oplock in a directory that cannot be watched") {
  Pair pair(1, strict());
  pair.server.files["f"] = {1, 1'000'000};
  Client client(pair);
  client.begin();
  const FileId file = client.opened(client.open("f"));
  CHECK(version_read(client, file, 0) == 1);
  pair.run();
  pair.server.change_beside("f");
  CHECK(version_read(client, file, 65536) == 2);
  CHECK(pair.near.counters().ahead_bytes == 0);
}

TEST_CASE("behind a silent line data read ahead is used for a second and a round trip, and no longer") {
  using namespace std::chrono_literals;
  for (const auto rtt : {1ms, 100ms, 1500ms}) {
    INFO(rtt / 1ms << " ms");
    Surroundings surroundings = strict();
    surroundings.round_trip = rtt;
    Pair pair(1, surroundings);
    const auto confirmed = [&] {
      surroundings.contact = {.since = TimePoint{} + 1s, .confirmed = pair.now, .heard = pair.now};
      pair.near.on_surroundings(pair.now, as_told(surroundings));
      pair.far.on_surroundings(pair.now, as_told(surroundings));
    };
    pair.now = TimePoint{} + 1h;
    confirmed();
    pair.server.watches = true;
    pair.server.files["f"] = {1, 1'000'000};
    Client client(pair);
    client.begin();
    const FileId file = client.opened(client.open("f"));
    CHECK(version_read(client, file, 0) == 1);
    pair.run();
    confirmed();
    const std::uint64_t saved = pair.near.counters().round_trips_saved;
    const TimePoint last = pair.now;
    pair.now = last + 1s + rtt;
    CHECK(version_read(client, file, 65536) == 1);
    CHECK(pair.near.counters().round_trips_saved == saved + 1);
    pair.run();
    // The change was made, and what tells of it is on the line that fails.
    pair.server.files["f"].version = 2;
    pair.now = last + 1s + rtt + 1ms;
    CHECK(version_read(client, file, 131072) == 2);
    CHECK(pair.near.counters().round_trips_saved == saved + 1);
  }
}
