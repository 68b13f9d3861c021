// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <random>

#include "codecs/byte_reader.h"
#include "codecs/byte_writer.h"

using namespace longhaul;

namespace {

Buffer raw(std::initializer_list<unsigned> bytes) {
  Buffer buffer;
  for (unsigned b : bytes) buffer.push_back(std::byte(b));
  return buffer;
}

}  // namespace

TEST_CASE("variable-length integers match RFC 9000, appendix A.1") {
  struct Sample {
    Buffer bytes;
    std::uint64_t value;
  };
  for (const Sample& sample :
       {Sample{raw({0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c}), 151288809941952652},
        Sample{raw({0x9d, 0x7f, 0x3e, 0x7d}), 494878333}, Sample{raw({0x7b, 0xbd}), 15293},
        Sample{raw({0x25}), 37}}) {
    ByteReader reader(sample.bytes);
    CHECK(reader.varint() == sample.value);
    CHECK(reader.remaining() == 0);
    Buffer written;
    ByteWriter(written).varint(sample.value);
    CHECK(written == sample.bytes);
    CHECK(varint_size(sample.value) == sample.bytes.size());
  }
  // Longer than necessary is allowed to be read.
  CHECK(ByteReader(raw({0x40, 0x25})).varint() == 37);
}

TEST_CASE("every number is read back, at every boundary of a length") {
  std::vector<std::uint64_t> numbers{0, 63, 64, 16'383, 16'384, (1ull << 30) - 1, 1ull << 30, kMaxVarint};
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) numbers.push_back((random() & kMaxVarint) >> (random() % 62));
  for (std::uint64_t number : numbers) {
    Buffer bytes;
    ByteWriter(bytes).varint(number);
    CHECK(bytes.size() == varint_size(number));
    ByteReader reader(bytes);
    CHECK(reader.varint() == number);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      Buffer torn(bytes.begin(), bytes.begin() + static_cast<long>(size));
      CHECK_FALSE(ByteReader(torn).varint());
    }
  }
}

TEST_CASE("fixed numbers are big-endian") {
  Buffer bytes;
  ByteWriter writer(bytes);
  writer.u8(0x01);
  writer.fixed16(0x0203);
  writer.fixed64(0x0405060708090a0b);
  CHECK(bytes == raw({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  ByteReader reader(bytes);
  CHECK(reader.u8() == 0x01);
  CHECK(reader.fixed16() == 0x0203);
  CHECK(reader.fixed64() == 0x0405060708090a0b);
  CHECK_FALSE(reader.u8());
}

TEST_CASE("a read that does not fit consumes nothing") {
  Buffer bytes = raw({0x05, 'a', 'b'});
  ByteReader reader(bytes);
  CHECK_FALSE(reader.fixed64());
  CHECK_FALSE(reader.bytes(4));
  CHECK_FALSE(reader.bytes(~0ull));
  CHECK_FALSE(reader.sized());
  CHECK_FALSE(reader.text());
  CHECK(reader.remaining() == 3);
  CHECK(reader.u8() == 5);
  CHECK_FALSE(reader.fixed64());
  CHECK(as_text(*reader.bytes(2)) == "ab");
  CHECK(reader.bytes(0));
  CHECK_FALSE(reader.varint());
}

TEST_CASE("a length beyond the input yields nothing") {
  CHECK_FALSE(ByteReader(raw({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'x'})).sized());
}

TEST_CASE("sized bytes and texts are read back") {
  Buffer bytes;
  ByteWriter writer(bytes);
  writer.text("branch");
  writer.sized({});
  writer.text(std::string(300, 'z'));
  ByteReader reader(bytes);
  CHECK(reader.text() == "branch");
  CHECK(reader.text() == "");
  CHECK(reader.text()->size() == 300);
  CHECK(reader.rest().empty());
}
