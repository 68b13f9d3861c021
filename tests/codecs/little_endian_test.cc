// SPDX-License-Identifier: Apache-2.0
#include "codecs/little_endian.h"

#include <catch2/catch.hpp>

using namespace longhaul;

TEST_CASE("little-endian integers are read back as written, least significant byte first") {
  Buffer bytes;
  LittleEndianWriter out(bytes);
  out.u8(0x01);
  out.u16(0x0302);
  out.u32(0x07060504);
  out.u64(0x0f0e0d0c0b0a0908);
  out.zeros(2);
  out.bytes(as_bytes("end"));
  REQUIRE(bytes.size() == 20);
  for (std::size_t i = 0; i < 15; ++i) CHECK(std::to_integer<std::size_t>(bytes[i]) == i + 1);

  LittleEndianReader in(bytes);
  CHECK(in.u8() == 0x01);
  CHECK(in.u16() == 0x0302);
  CHECK(in.u32() == 0x07060504);
  CHECK(in.u64() == 0x0f0e0d0c0b0a0908);
  in.skip(2);
  CHECK(as_text(in.bytes(3)) == "end");
  CHECK(in.remaining() == 0);
  CHECK(in.ok());
}

TEST_CASE("after a read that does not fit, every later read gives zero") {
  const Buffer bytes(7, std::byte{0xff});
  LittleEndianReader in(bytes);
  CHECK(in.u32() == 0xffffffff);
  CHECK(in.u32() == 0);
  CHECK_FALSE(in.ok());
  CHECK(in.u8() == 0);
  CHECK(in.bytes(1).empty());
  CHECK(in.bytes(0).empty());
  CHECK_FALSE(in.ok());

  LittleEndianReader exact(bytes);
  CHECK(exact.bytes(7).size() == 7);
  CHECK(exact.bytes(0).empty());
  CHECK(exact.ok());
  CHECK(exact.bytes(~0ull).empty());
  CHECK_FALSE(exact.ok());
}
