// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/held_inputs.h"

#include <catch2/catch.hpp>

namespace longhaul::smb::smb2::test {

TEST_CASE("inputs that wait come out in order, and their bytes are counted meanwhile") {
  HeldInputs held;
  CHECK(held.empty());
  const Slice frame = Slice::copy_of(as_bytes("frame")), attached = Slice::copy_of(as_bytes("data"));
  held.push(Frame{FrameKind::smb2, frame});
  held.push(HeldInputs::Told{Allowance{1}, attached});
  held.push(modules::Ending::closed);
  CHECK(held.bytes() >= frame.size() + attached.size());
  CHECK(std::get<Frame>(held.pop()).bytes.size() == frame.size());
  CHECK(held.bytes() >= attached.size());
  CHECK(std::get<HeldInputs::Told>(held.pop()).attached.size() == attached.size());
  CHECK(held.bytes() == 0);
  CHECK_FALSE(held.empty());
  CHECK(std::get<modules::Ending>(held.pop()) == modules::Ending::closed);
  CHECK(held.empty());
}

}  // namespace longhaul::smb::smb2::test
