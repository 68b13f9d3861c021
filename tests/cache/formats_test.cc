// SPDX-License-Identifier: Apache-2.0
// The bytes that lie on the disk: the segment file against golden/abc.segment, records and names against
// everything that could stand in their place.
#include <catch2/catch.hpp>

#include "cache/catalogue.h"
#include "cache/error.h"
#include "tests/cache/segments.h"
#include "tests/proxy/temporary_folder.h"

namespace longhaul::cache {
namespace {

using namespace test;

Made abc() {
  Made made;
  made.parts = {Slice::copy_of(as_bytes("abc"))};
  for (int i = 0; i < 16; ++i) made.name.writer[i] = std::byte(i);
  made.name.epoch = 1;
  made.name.first = 65'536;
  made.name.length = 3;
  made.name.digest = reduction::segment_digest(made.parts);
  made.hooks = {{0x1122334455667788, 1}};
  return made;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST_CASE("a segment file is what the format says, byte for byte") {
  TemporaryFolder folder;
  Made made = abc();
  std::string path = (folder.path() / "abc").string();
  REQUIRE(write_segment(system_files(), path, made.name, made.parts, made.hooks));
  std::string file = folder.read("abc");
  CHECK(file.size() == segment_file_bytes(3, 1));
  CHECK(hex(as_text(made.name.digest)) == "06b05ab6733a618578af5f94892f3950");
  std::ifstream golden(LONGHAUL_SOURCE_DIR "/tests/cache/golden/abc.segment", std::ios::binary);
  std::string expected{std::istreambuf_iterator<char>(golden), {}};
  CHECK(hex(file) == hex(expected));
}

TEST_CASE("every range of a segment is read as it was written, however it was cut") {
  TemporaryFolder folder;
  std::uint32_t length = GENERATE(1u, 65'536u, 65'537u, 200'000u);
  std::size_t part = GENERATE(0u, 1'000u, 65'536u, 65'535u, 100'001u);
  Made made = segment(length + part, length, part);
  std::string path = (folder.path() / "file").string();
  REQUIRE(write_segment(system_files(), path, made.name, made.parts, made.hooks));
  CHECK(folder.read("file").size() == segment_file_bytes(length, made.hooks.size()));
  Random random{length};
  for (int i = 0; i < 50; ++i) {
    auto offset = static_cast<std::uint32_t>(random.below(length));
    auto size = static_cast<std::uint32_t>(1 + random.below(length - offset));
    auto bytes = read_segment(system_files(), path, made.name, offset, size);
    REQUIRE(bytes.has_value());
    REQUIRE(bytes->size() == size);
    REQUIRE(right(made.name, offset, bytes->bytes()));
  }
  auto description = read_description(system_files(), path, segment_file_bytes(length, made.hooks.size()));
  REQUIRE(description.has_value());
  CHECK(description->name == made.name);
  REQUIRE(description->hooks.size() == made.hooks.size());
  for (std::size_t i = 0; i < made.hooks.size(); ++i) {
    CHECK(description->hooks[i].fingerprint == made.hooks[i].fingerprint);
    CHECK(description->hooks[i].offset == made.hooks[i].offset);
  }
}

TEST_CASE("a piece of another segment, or of another place, does not pass") {
  TemporaryFolder folder;
  Made a = segment(1, 200'000), b = segment(2, 200'000);
  for (auto [made, name] : {std::pair{&a, "a"}, std::pair{&b, "b"}})
    REQUIRE(
        write_segment(system_files(), (folder.path() / name).string(), made->name, made->parts, made->hooks));
  std::string path = (folder.path() / "a").string();
  CHECK(read_segment(system_files(), path, b.name, 0, 10).error() == StoreError::damaged);
  std::string file = folder.read("a");
  constexpr std::size_t kPiece = 65'544;
  std::string swapped = file.substr(0, 72) + file.substr(72 + kPiece, kPiece) + file.substr(72, kPiece) +
                        file.substr(72 + 2 * kPiece);
  folder.write("swapped", swapped);
  path = (folder.path() / "swapped").string();
  CHECK(read_segment(system_files(), path, a.name, 0, 10).error() == StoreError::damaged);
  CHECK(read_segment(system_files(), path, a.name, 70'000, 10).error() == StoreError::damaged);
  CHECK(read_segment(system_files(), path, a.name, 140'000, 10).has_value());
}

TEST_CASE("a file that is cut anywhere, or has a bit flipped in its head, is not described") {
  TemporaryFolder folder;
  Made made = abc();
  std::string path = (folder.path() / "abc").string();
  REQUIRE(write_segment(system_files(), path, made.name, made.parts, made.hooks));
  std::string file = folder.read("abc");
  for (std::size_t size = 0; size < file.size(); ++size) {
    folder.write("cut", file.substr(0, size));
    REQUIRE_FALSE(read_description(system_files(), (folder.path() / "cut").string(), size).has_value());
  }
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    if (bit / 8 >= 72 && bit / 8 < 83) continue;  // the piece is looked at when it is read
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    folder.write("flipped", flipped);
    REQUIRE_FALSE(
        read_description(system_files(), (folder.path() / "flipped").string(), file.size()).has_value());
  }
}

TEST_CASE("a record comes back, and nothing else passes for one") {
  Made made = abc();
  Record record{.number = 9, .file_bytes = segment_file_bytes(3, 1), .name = made.name, .hooks = made.hooks};
  Buffer value = encode_record(record);
  auto decoded = decode_record(9, value);
  REQUIRE(decoded.has_value());
  CHECK(decoded->name == made.name);
  CHECK(decoded->file_bytes == record.file_bytes);
  CHECK(decoded->hooks.size() == 1);
  CHECK_FALSE(decode_record(10, value).has_value());
  for (std::size_t size = 0; size < value.size(); ++size)
    CHECK_FALSE(decode_record(9, Bytes(value).first(size)).has_value());
  for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
    Buffer flipped = value;
    flipped[bit / 8] ^= std::byte(1 << bit % 8);
    CHECK_FALSE(decode_record(9, flipped).has_value());
  }
  value.push_back(std::byte{0});
  CHECK_FALSE(decode_record(9, value).has_value());
}

TEST_CASE("a name comes back, and a length that no segment has does not pass") {
  SegmentName name = segment(5, 1000).name;
  Buffer bytes;
  ByteWriter writer(bytes);
  reduction::write_name(name, writer);
  CHECK(bytes.size() == reduction::kSegmentNameBytes);
  ByteReader reader(bytes);
  CHECK(reduction::read_name(reader).value() == name);
  CHECK(reader.remaining() == 0);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader shorter(Bytes(bytes).first(size));
    CHECK_FALSE(reduction::read_name(shorter).has_value());
  }
  for (std::uint32_t length : {0u, reduction::kMaxSegmentBytes + 1, ~0u}) {
    name.length = length;
    Buffer other;
    ByteWriter to(other);
    reduction::write_name(name, to);
    ByteReader from(other);
    CHECK_FALSE(reduction::read_name(from).has_value());
  }
}

}  // namespace
}  // namespace longhaul::cache
