// SPDX-License-Identifier: Apache-2.0
// First blocks read through handles of our own, through both halves.
#include <catch2/catch.hpp>

#include "codecs/little_endian.h"
#include "tests/proxy/modules/smb/smb2/pair.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

// As Windows opens a file.
struct DurableOpen {
  explicit DurableOpen(std::uint32_t access = access::read_data | access::read_attributes) {
    lease[0] = std::byte{7};
    store_le<std::uint32_t>(lease.data() + 16, lease_state::read | lease_state::handle | lease_state::write);
    create.oplock = OplockLevel::lease;
    create.desired_access = access;
    create.contexts.push_back({as_bytes(create_context::durable_v2), as_bytes(durable)});
    create.contexts.push_back({as_bytes(create_context::lease), lease});
  }
  std::string durable = std::string(32, '\1');
  std::array<std::byte, 52> lease{};
  CreateRequest create;
};

std::string read(Client& client, const FileId& file, std::uint64_t offset, std::uint32_t length) {
  const Message& answer = client.wait(client.ask(Command::read, read_request_body(file, offset, length)));
  return std::string(as_text(parse_read_response(answer.first().bytes).value().data));
}

}  // namespace

TEST_CASE("a file whose CREATE may be replayed is read ahead without a request on the client's handle") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Pair pair(seed);
    pair.server.files["f"] = {1, 30'000};
    Client client(pair);
    client.begin();
    const FileId file = client.opened(client.open("f", DurableOpen().create));
    pair.run();
    CHECK(!pair.server.used.contains(file));
    CHECK(pair.server.open_handles() == 1);  // ours is closed
    const std::size_t requests = pair.server.requests;
    CHECK((read(client, file, 0, 30'000) == bytes_of(1, 0, 30'000)));
    CHECK(pair.server.requests == requests);  // the near half had all of it
    client.wait(client.ask(Command::close, close_request_body(file)));
    pair.run();
    CHECK(pair.server.open_handles() == 0);
    CHECK(pair.server.violations.empty());
    CHECK(client.violations.empty());
  }
}

TEST_CASE("the client's requests for the file reach the server after the CLOSE of our handle") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Pair pair(seed);
    pair.server.files["f"] = {1, 3'000'000};
    Client client(pair);
    client.begin();
    const FileId file = client.opened(client.open("f", DurableOpen().create));
    // At any moment of the second handle's life.
    for (unsigned steps = seed % 40; steps > 0; --steps) pair.step();
    if (seed % 2 == 0) {
      const std::uint64_t at = 65536 * (seed % 5);
      CHECK((read(client, file, at, 65536) == bytes_of(1, at, 65536)));
    }
    client.wait(client.ask(Command::close, close_request_body(file)));
    pair.run();
    CHECK(pair.server.open_handles() == 0);
    REQUIRE(!pair.server.closed.empty());
    CHECK(pair.server.closed.back() == file);
    CHECK(pair.server.violations.empty());
    CHECK(client.violations.empty());
    CHECK(!pair.reset);
  }
}

TEST_CASE("no second handle for what it could disturb, or where it saves nothing") {
  const auto requests_of_ours = [](const CreateRequest& create, std::uint64_t bytes, int round_trip) {
    Surroundings line = Pair::usual();
    line.round_trip = std::chrono::milliseconds(round_trip);
    Pair pair(3, line);
    pair.server.files["f"] = {1, bytes};
    Client client(pair);
    client.begin();
    client.opened(client.open("f", create));
    pair.run();
    return pair.far.counters().injected;
  };
  CHECK(requests_of_ours(DurableOpen().create, 1000, 100) > 0);
  CHECK(requests_of_ours(DurableOpen(access::read_data | access::delete_file).create, 1000, 100) == 0);
  CHECK(requests_of_ours(DurableOpen(access::maximum_allowed).create, 1000, 100) == 0);
  CHECK(requests_of_ours(DurableOpen(access::write_data).create, 1000, 100) == 0);
  CHECK(requests_of_ours(DurableOpen().create, 0, 100) == 0);
  CHECK(requests_of_ours(DurableOpen().create, 1000, 1) == 0);
  DurableOpen deletes;
  deletes.create.options = create_options::delete_on_close;
  CHECK(requests_of_ours(deletes.create, 1000, 100) == 0);
}
