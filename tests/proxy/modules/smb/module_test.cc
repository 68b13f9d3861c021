// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/module.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/as_told.h"
#include "tests/proxy/modules/smb/smb2/pair.h"

namespace longhaul::smb {
namespace {

TEST_CASE("SMB: an incomplete frame is counted, and passes on if memory does not suffice for the rest") {
  SmbModule module(Side::near, {.server_port = 445}, {});
  module.on_surroundings({}, as_told(Surroundings()));
  Buffer part(1000);
  write_frame_head(1 << 20, part.data());
  part[4] = std::byte{0xFE};
  part[5] = std::byte{'S'};
  part[6] = std::byte{'M'};
  part[7] = std::byte{'B'};
  module.from_lan({}, Slice::copy_of(part));
  CHECK_FALSE(module.poll_output());
  CHECK(module.held_bytes() == 1000);
  module.give_up_memory({});
  CHECK(module.held_bytes() == 0);
  const auto aside = module.poll_output();
  REQUIRE(aside);
  REQUIRE(std::holds_alternative<modules::StepAside>(*aside));
  CHECK(std::get<modules::StepAside>(*aside).way == modules::Way::to_stream);
  CHECK(module.reason() == smb::reasons::memory_limit);
  const auto rest = module.poll_output();
  REQUIRE(rest);
  REQUIRE(std::holds_alternative<modules::ToStream>(*rest));
  CHECK(as_text(std::get<modules::ToStream>(*rest).bytes.bytes()) == as_text(part));
  CHECK_FALSE(module.poll_output());
}

// With the answers of the server on their way, which the client does not wait for.
TEST_CASE("SMB: while a promise is outstanding, want of memory does not end the module") {
  int tried = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    smb2::test::Pair pair(seed);
    smb2::test::Client client(pair);
    client.begin();
    const smb2::FileId file = client.opened(client.open("f", smb2::OplockLevel::batch));
    pair.run();
    client.wait(client.ask(smb2::Command::write, smb2::test::write_request_body(file, 0, "new")));
    const auto owes = [&] { return pair.near.counters().promises_made > pair.near.counters().promises_kept; };
    if (!owes()) continue;
    ++tried;
    pair.near.give_up_memory(pair.now);
    CHECK(pair.near.counters().steps_aside == 0);
    while (owes() && pair.step()) {
    }
    pair.near.give_up_memory(pair.now);
    CHECK(pair.near.counters().steps_aside == 1);
  }
  CHECK(tried > 0);
}

}  // namespace
}  // namespace longhaul::smb
