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

TEST_CASE("a file read block by block comes ahead of the client, byte for byte") {
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

TEST_CASE("a small file is there when its first READ comes, and its end too") {
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

TEST_CASE("a client without an oplock is not told of the one that was asked for it") {
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
  modules::Surroundings off = Pair::usual();
  off.features.smb_read_ahead = off.features.smb_write_behind = off.features.smb_metadata = false;
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
