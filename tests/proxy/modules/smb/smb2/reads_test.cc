// SPDX-License-Identifier: Apache-2.0
// Read-ahead through both halves.
#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/pair.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

std::string data_of(const Message& message) {
  auto read = parse_read_response(message.first().bytes);
  return read ? std::string(as_text(read->data)) : std::string();
}

}  // namespace

TEST_CASE("a file read block by block arrives ahead of the client, byte for byte") {
  for (bool cut : {false, true}) {
    Pair pair(1);
    pair.cut_bytes = cut;
    pair.server.files["big"] = {3, 3'000'017};
    Client client(pair);
    client.begin();
    FileId file = client.opened(client.open("big"));
    std::string all;
    std::uint64_t offset = 0;
    while (true) {
      const Message& answer = client.wait(client.ask(Command::read, read_request_body(file, offset, 65536)));
      if (answer.header().status == Status::end_of_file) break;
      REQUIRE(answer.header().status == Status::success);
      all += data_of(answer);
      offset = all.size();
    }
    CHECK(all == bytes_of(3, 0, 3'000'017));
    client.wait(client.ask(Command::close, close_request_body(file)));
    pair.run();
    CHECK(pair.server.violations.empty());
    CHECK(client.violations.empty());
    CHECK(pair.near.counters().round_trips_saved > 40);
    CHECK(pair.near.counters().ahead_wasted_bytes == 0);
  }
}

TEST_CASE("a near side with little cache is sent only as much as it keeps") {
  for (const std::uint64_t most : {std::uint64_t{0}, std::uint64_t{8} << 20, std::uint64_t{2} << 20}) {
    Site site;
    site.ahead->most_bytes = most;
    Surroundings line = Pair::usual();
    line.line_bytes_per_second = 100'000'000;  // worth 15 MB ahead
    Pair pair(5, line, site);
    pair.server.files["big"] = {3, 20'000'000};
    Client client(pair);
    client.begin();
    FileId file = client.opened(client.open("big"));
    std::uint64_t held = 0;
    for (std::uint64_t offset = 0; offset < 20'000'000; offset += 65536) {
      const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(65536, 20'000'000 - offset));
      const Message& answer = client.wait(client.ask(Command::read, read_request_body(file, offset, length)));
      REQUIRE((data_of(answer) == bytes_of(3, offset, length)));
      held = std::max(held, site.ahead->held_bytes);
      pair.near.on_surroundings(pair.now, as_told(line));
      pair.run();
    }
    CHECK(held <= most);
    // The first blocks come before it is known how little room there is.
    CHECK(pair.near.counters().ahead_wasted_bytes <= 2u << 20);
    CHECK(client.violations.empty());
  }
}

TEST_CASE("a small file has arrived completely when its first READ is sent") {
  Pair pair(2);
  pair.server.files["small"] = {1, 10'000};
  Client client(pair);
  client.begin();
  FileId file = client.opened(client.open("small"));
  pair.run();
  std::size_t before = pair.server.requests;
  CHECK(data_of(client.wait(client.ask(Command::read, read_request_body(file, 0, 65536)))) ==
        bytes_of(1, 0, 10'000));
  CHECK(client.wait(client.ask(Command::read, read_request_body(file, 10'000, 65536))).header().status ==
        Status::end_of_file);
  pair.run();
  CHECK(pair.server.requests == before);
  CHECK(client.violations.empty());
}

TEST_CASE("a client without an oplock does not see the one requested for it") {
  Pair pair(3);
  pair.server.files["f"] = {1, 100'000};
  Client client(pair);
  client.begin();
  const Message& answer = client.wait(client.open("f"));
  CHECK(parse_create_response(answer.first().bytes)->oplock == OplockLevel::none);
  pair.run();
  CHECK(pair.near.counters().ahead_bytes == 100'000);
}

TEST_CASE("with read-ahead off nothing is added") {
  Surroundings off = Pair::usual();
  off.features.read_ahead = off.features.write_behind = off.features.metadata = false;
  Pair pair(4, off);
  pair.server.files["f"] = {1, 100'000};
  Client client(pair);
  client.begin();
  FileId file = client.opened(client.open("f"));
  CHECK(data_of(client.wait(client.ask(Command::read, read_request_body(file, 0, 65536)))) ==
        bytes_of(1, 0, 65536));
  pair.run();
  CHECK(pair.far.counters().injected == 0);
  CHECK(pair.near.counters().round_trips_saved == 0);
}

// A client that reads, writes, opens and closes while another one rewrites the same file; everything in
// between in any order. Whatever is read must be of one version, one that the file had while the READ was
// under way, and no older than what the client wrote itself before; every request is answered once; no id is
// used twice at the server.
TEST_CASE("in any order of events READs return content that the file had while they were pending") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    Pair pair(seed);
    pair.cut_bytes = seed % 2;
    std::mt19937 random(seed * 77);
    const bool client_asks = seed % 3 == 0;  // for an oplock of its own
    const std::uint64_t size = 1000 + random() % 900'000;
    pair.server.files["f"] = {0, size};
    pair.server.files["g"] = {50, 5000};
    Client client(pair);
    client.begin();

    struct Read {
      std::uint64_t offset;
      std::uint32_t length;
      unsigned oldest;
      FileId file;
    };
    std::map<MessageId, Read> reads;
    std::map<MessageId, FileId> opens;
    std::map<MessageId, bool> others;  // CLOSE, WRITE
    std::vector<FileId> files;
    unsigned writes_answered = 0, writes_asked = 0, checked = 0;
    client.on_answer = [&](MessageId id, const Message& message) {
      Status status = message.header().status;
      if (opens.contains(id)) {
        if (auto answer = parse_create_response(message.first().bytes); answer && status == Status::success)
          files.push_back(answer->file);
        opens.erase(id);
      }
      if (others.contains(id) && others[id] && status == Status::success) ++writes_answered;
      others.erase(id);
      auto read = reads.find(id);
      if (read == reads.end()) return;
      const Read asked = read->second;
      reads.erase(read);
      if (status != Status::success) {
        bool at_end = status == Status::end_of_file && asked.offset >= size;
        if (!at_end && status != Status::file_closed) FAIL("a READ failed");
        return;
      }
      std::string data = data_of(message);
      REQUIRE(data.size() == std::min<std::uint64_t>(asked.length, size - asked.offset));
      bool found = false;
      for (unsigned v = asked.oldest; v <= pair.server.version("f") && !found; ++v)
        found = data == bytes_of(v, asked.offset, data.size());
      ++checked;
      if (!found) FAIL("of no version that it may be of");
    };

    std::uint64_t position = 0;
    unsigned outside = 0;
    for (int i = 0; i < 3000 && !pair.reset; ++i) {
      // What a client without an oplock of its own believes: nothing is older than what it was told before.
      if (random() % 12 == 0 && client.credits() > 2) {
        switch (random() % 10) {
          case 0:
            if (files.size() + opens.size() < 2)
              opens[client.open("f", client_asks ? OplockLevel::batch : OplockLevel::none)] = {};
            break;
          case 1:
            if (!files.empty() && random() % 4 == 0) {
              others[client.ask(Command::close, close_request_body(files.back()))] = false;
              files.pop_back();
              position = 0;
            }
            break;
          case 2:
            if (!files.empty() && random() % 3 == 0) {
              ++writes_asked;
              others[client.ask(Command::write, write_request_body(files.front(), 0, "next"))] = true;
            }
            break;
          case 3:
            if (outside < 20 && random() % 3 == 0) ++outside, pair.server.write_from_outside("f");
            break;
          default:
            if (!files.empty()) {
              auto length = static_cast<std::uint32_t>(random() % 3 ? 16384 : 1 + random() % 65536);
              if (random() % 5 == 0) position = random() % (size + 1000);
              unsigned oldest = std::min(pair.server.version("f"), pair.server.settled("f"));
              oldest = std::max(oldest, writes_answered);
              reads[client.ask(Command::read, read_request_body(files.back(), position, length))] = {
                  position, length, oldest, files.back()};
              position += length;
            }
        }
      }
      for (const OplockBreak& broken : std::exchange(client.breaks, {}))
        if (client_asks && broken.level != OplockLevel::none)
          others[client.ask(Command::oplock_break, Body([&](auto& out) {
                              out.u16(24), out.u8(static_cast<std::uint8_t>(broken.level)), out.zeros(5),
                                  put(out, broken.file);
                            }))] = false;
      pair.step();
    }
    for (int i = 0; i < 10; ++i) {
      pair.run();
      for (const OplockBreak& broken : std::exchange(client.breaks, {}))
        if (client_asks && broken.level != OplockLevel::none)
          client.ask(Command::oplock_break, Body([&](auto& out) {
                       out.u16(24), out.u8(static_cast<std::uint8_t>(broken.level)), out.zeros(5),
                           put(out, broken.file);
                     }));
    }
    CHECK_FALSE(pair.reset);
    CHECK(reads.empty());
    CHECK(opens.empty());
    CHECK(others.empty());
    if (!client_asks) CHECK(client.breaks.empty());
    for (const std::string& violation : pair.server.violations) UNSCOPED_INFO(violation);
    for (const std::string& violation : client.violations) UNSCOPED_INFO(violation);
    CHECK(pair.server.violations.size() + client.violations.size() == 0);
    (void)checked;
  }
}

TEST_CASE(
    "an unparsable request ends read-ahead, and message ids stay apart for the rest of the connection") {
  Pair pair(11);
  pair.server.files["big"] = {1, 3'000'000};
  Client client(pair);
  client.begin();
  FileId file = client.opened(client.open("big"));
  for (std::uint64_t offset = 0; offset < 5 * 65536; offset += 65536)
    client.wait(client.ask(Command::read, read_request_body(file, offset, 65536)));
  REQUIRE(pair.far.counters().injected > 0);
  const Message& refused =
      client.wait(client.ask(Command::write, Body([](auto& out) { out.u16(49), out.zeros(10); })));
  CHECK(refused.header().status == Status::invalid_parameter);
  // The client comes to the ids that were used ahead of it.
  for (int i = 0; i < 1500; ++i) client.wait(client.ask(Command::echo, empty_body()));
  CHECK_FALSE(pair.reset);
  CHECK(pair.server.violations.empty());
  CHECK(client.violations.empty());
}

TEST_CASE("no request of ours precedes the client's first use of a handle whose CREATE it may replay") {
  Pair pair(12);
  pair.server.files["f"] = {1, 300'000};
  Client client(pair);
  client.begin();
  CreateRequest create{.oplock = OplockLevel::batch,
                       .desired_access = access::read_data | access::write_data};
  const std::string durable(32, '\1');
  create.contexts.push_back({as_bytes(create_context::durable_v2), as_bytes(durable)});
  const MessageId id = client.open("f", create);
  const FileId file = client.opened(id);
  pair.run();
  CHECK(pair.far.counters().injected == 0);
  client.wait(client.ask(Command::read, read_request_body(file, 0, 65536)));
  pair.run();
  CHECK(pair.far.counters().injected > 0);
}

TEST_CASE("relaxed, a change beside the server is seen within ten seconds in a file that stays open") {
  using namespace std::chrono_literals;
  Pair pair(2);
  pair.server.files["small"] = {1, 10'000};
  Client client(pair);
  client.begin();
  FileId file = client.opened(client.open("small"));
  const auto read = [&](std::uint64_t offset) {
    return data_of(client.wait(client.ask(Command::read, read_request_body(file, offset, 10'000))));
  };
  CHECK((read(0) == bytes_of(1, 0, 10'000)));
  pair.server.files["small"] = {2, 10'000};
  pair.pass(9s);
  CHECK((read(0) == bytes_of(1, 0, 10'000)));  // nobody looks
  pair.pass(1s + 1ms);
  CHECK((read(0) == bytes_of(2, 0, 10'000)));
  const auto saved = pair.near.counters().round_trips_saved;
  CHECK((read(0) == bytes_of(2, 0, 10'000)));
  CHECK(pair.near.counters().round_trips_saved == saved + 1);  // it is kept again
  pair.server.files["small"] = {2, 20'000};
  pair.pass(10s + 1ms);
  CHECK((read(10'000) == bytes_of(2, 10'000, 10'000)));
}
