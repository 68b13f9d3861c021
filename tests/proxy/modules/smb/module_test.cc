// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/module.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/as_told.h"

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

}  // namespace
}  // namespace longhaul::smb
