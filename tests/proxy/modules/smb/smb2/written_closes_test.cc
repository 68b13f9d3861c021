// SPDX-License-Identifier: Apache-2.0
// CLOSEs of written files that are answered early, through both halves.
#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/pair.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

constexpr std::uint32_t kRead = lease_state::read, kWrite = lease_state::write, kHandle = lease_state::handle;

// As Windows opens a file to write it.
MessageId open_with_lease(Client& client, std::string_view name, std::uint32_t state) {
  std::array<std::byte, 52> lease{};
  lease[0] = std::byte{7};
  store_le(lease.data() + 16, state);
  CreateRequest create;
  create.oplock = OplockLevel::lease;
  create.desired_access = access::read_data | access::write_data;
  create.contexts.push_back({as_bytes(create_context::lease), lease});
  return client.open(name, create);
}

// In how many of these runs the client has the answer to its CLOSE while the server has the file open.
template <class Run>
int early_closes(Run run) {
  int early = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Surroundings surroundings = Pair::usual();
    surroundings.features.write_behind_cached = false;
    Pair pair(seed, surroundings);
    pair.server.files["f"] = {1, 30'000};
    Client client(pair);
    client.begin();
    const MessageId close = run(pair, client);
    CHECK(client.wait(close).header().status == Status::success);
    early += pair.server.open_handles() != 0;
    pair.run();
    CHECK(pair.server.open_handles() == 0);
    CHECK(pair.server.violations.empty());
    CHECK(client.violations.empty());
    CHECK_FALSE(pair.reset);
  }
  return early;
}

}  // namespace

TEST_CASE("a CLOSE need not wait under a lease for writes and handles when all WRITEs are answered") {
  const auto written = [](std::uint32_t state, bool waits, bool flushes) {
    return early_closes([=](Pair&, Client& client) {
      const FileId file = client.opened(open_with_lease(client, "f", state));
      const MessageId sent = client.ask(Command::write, write_request_body(file, 0, "hello"));
      if (waits) client.wait(sent);
      if (flushes) client.wait(client.ask(Command::flush, flush_request_body(file)));
      return client.ask(Command::close, close_request_body(file));
    });
  };
  CHECK(written(kRead | kWrite | kHandle, true, false) > 0);
  CHECK(written(kRead | kWrite | kHandle, true, true) > 0);
  CHECK(written(kRead | kWrite | kHandle, false, false) == 0);
  CHECK(written(kRead | kWrite, true, false) == 0);
  CHECK(written(kRead | kHandle, true, false) == 0);
}
