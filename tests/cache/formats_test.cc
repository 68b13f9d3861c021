// SPDX-License-Identifier: Apache-2.0
// The bytes that lie on the disk: the segment file against golden/abc.segment, records and names against
// everything that could stand in their place.
#include <catch2/catch.hpp>

#include "cache/catalogue.h"
#include "cache/error.h"
#include "tests/cache/keys.h"
#include "tests/cache/segments.h"
#include "tests/proxy/temporary_folder.h"

namespace longhaul::cache {
namespace {

using namespace test;

Made abc() {
  Made made;
  made.parts = {Slice::copy_of(as_bytes("abc"))};
  for (int i = 0; i < 16; ++i) made.name.writer[i] = std::byte(i), made.name.reader[i] = std::byte(0x20 + i);
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

// A segment's file, as bytes, in a folder of its own.
struct Written {
  explicit Written(const Made& made, const DictionaryKey& used = known_key(), const Salt& salt = known_salt())
      : key(used), name(made.name) {
    REQUIRE(write_segment(system_files(), path("file"), key, salt, name, made.parts, made.hooks));
    bytes = folder.read("file");
  }
  std::string path(const std::string& file) const { return (folder.path() / file).string(); }
  // Of other bytes in its place.
  Result<Slice> read(const std::string& other, std::uint32_t offset, std::uint32_t size) const {
    folder.write("other", other);
    return read_segment(system_files(), path("other"), key, name, offset, size);
  }
  Result<Description> describe(const std::string& other) const {
    folder.write("other", other);
    return read_description(system_files(), path("other"), key, other.size());
  }

  TemporaryFolder folder;
  DictionaryKey key;
  SegmentName name;
  std::string bytes;
};

constexpr std::size_t kHeader = 128, kPiece = 65'552;

TEST_CASE("a segment file matches the format, byte for byte") {
  Made made = abc();
  Written written(made);
  CHECK(written.bytes.size() == segment_file_bytes(3, 1));
  CHECK(hex(as_text(made.name.digest)) == "06b05ab6733a618578af5f94892f3950");
  std::ifstream golden(LONGHAUL_SOURCE_DIR "/tests/cache/golden/abc.segment", std::ios::binary);
  std::string expected{std::istreambuf_iterator<char>(golden), {}};
  CHECK(hex(written.bytes) == hex(expected));
}

TEST_CASE("every range of a segment is read as it was written, however it was cut") {
  std::uint32_t length = GENERATE(1u, 65'536u, 65'537u, 200'000u, 500'000u);
  std::size_t part = GENERATE(0u, 1'000u, 65'536u, 65'535u, 100'001u);
  Made made = segment(length + part, length, part);
  Written written(made);
  CHECK(written.bytes.size() == segment_file_bytes(length, made.hooks.size()));
  Random random{length};
  for (int i = 0; i < 50; ++i) {
    auto offset = static_cast<std::uint32_t>(random.below(length));
    auto size = static_cast<std::uint32_t>(1 + random.below(length - offset));
    auto bytes = read_segment(system_files(), written.path("file"), written.key, made.name, offset, size);
    REQUIRE(bytes.has_value());
    REQUIRE(bytes->size() == size);
    REQUIRE(right(made.name, offset, bytes->bytes()));
  }
  auto description = written.describe(written.bytes);
  REQUIRE(description.has_value());
  CHECK(description->name == made.name);
  REQUIRE(description->hooks.size() == made.hooks.size());
  for (std::size_t i = 0; i < made.hooks.size(); ++i) {
    CHECK(description->hooks[i].fingerprint == made.hooks[i].fingerprint);
    CHECK(description->hooks[i].offset == made.hooks[i].offset);
  }
}

TEST_CASE("a segment file reveals nothing of the segment, and two files of one segment differ") {
  Made made = segment(3, 200'000);
  Written one(made), two(made, known_key(), known_salt(0x81));
  Buffer name;
  ByteWriter writer(name);
  reduction::write_name(made.name, writer);
  const std::string_view content = as_text(made.parts[0].bytes());
  for (const Written* written : {&one, &two}) {
    for (std::size_t at = 0; at + 16 <= content.size(); at += 1'000)
      CHECK(written->bytes.find(content.substr(at, 16)) == std::string::npos);
    for (std::size_t at = 0; at + 8 <= name.size(); at += 4)
      CHECK(written->bytes.find(as_text(name).substr(at, 8)) == std::string::npos);
    for (const Hook& hook : made.hooks) {
      Buffer fingerprint;
      ByteWriter(fingerprint).fixed64(hook.fingerprint);
      CHECK(written->bytes.find(as_text(fingerprint)) == std::string::npos);
    }
  }
  // The same content under another salt: not one block of 16 bytes is the same.
  for (std::size_t at = 40; at + 16 <= one.bytes.size(); at += 16)
    REQUIRE(one.bytes.compare(at, 16, two.bytes, at, 16) != 0);
}

TEST_CASE("a piece from another segment, position or file fails authentication") {
  Made made = segment(1, 200'000);
  Written a(made), same(made, known_key(), known_salt(9)), b(segment(2, 200'000));
  auto piece = [](const Written& written, std::size_t index) {
    return written.bytes.substr(kHeader + index * kPiece, kPiece);
  };
  auto with = [&](std::size_t index, const std::string& other) {
    return a.bytes.substr(0, kHeader + index * kPiece) + other +
           a.bytes.substr(kHeader + (index + 1) * kPiece);
  };
  CHECK(a.read(a.bytes, 0, 200'000).has_value());
  CHECK(a.read(b.bytes, 0, 10).error() == StoreError::damaged);  // the whole file, salt and all
  CHECK(a.read(same.bytes, 0, 10).has_value());
  CHECK(a.read(with(0, piece(same, 0)), 0, 10).error() == StoreError::damaged);
  CHECK(a.read(with(0, piece(b, 0)), 0, 10).error() == StoreError::damaged);
  const std::string swapped = with(0, piece(a, 1)).replace(kHeader + kPiece, kPiece, piece(a, 0));
  CHECK(a.read(swapped, 0, 10).error() == StoreError::damaged);
  CHECK(a.read(swapped, 70'000, 10).error() == StoreError::damaged);
  CHECK(a.read(swapped, 140'000, 10).has_value());
  // A description of one file in front of another one's pieces.
  CHECK_FALSE(a.describe(b.bytes.substr(0, kHeader) + a.bytes.substr(kHeader)).has_value());
  CHECK_FALSE(a.describe(same.bytes.substr(0, kHeader) + a.bytes.substr(kHeader)).has_value());
  CHECK(a.read(same.bytes.substr(0, kHeader) + a.bytes.substr(kHeader), 0, 10).error() ==
        StoreError::damaged);
}

TEST_CASE("a file cannot be read with another key") {
  Made made = segment(4, 3'000);
  Written written(made);
  const DictionaryKey other = known_key(0x41);
  CHECK(read_segment(system_files(), written.path("file"), other, made.name, 0, 10).error() ==
        StoreError::damaged);
  CHECK(read_description(system_files(), written.path("file"), other, written.bytes.size()).error() ==
        StoreError::damaged);
}

TEST_CASE("a truncated file is neither described nor read beyond the cut") {
  Written written(abc());
  for (std::size_t size = 0; size < written.bytes.size(); ++size) {
    REQUIRE_FALSE(written.describe(written.bytes.substr(0, size)).has_value());
    REQUIRE(written.read(written.bytes.substr(0, size), 0, 3).has_value() == (size >= kHeader + 16 + 3));
  }
  REQUIRE_FALSE(written.describe(written.bytes + "x").has_value());
  // A tail that was never written, as a loss of power leaves it.
  std::string zeros = written.bytes;
  zeros.replace(kHeader + 19, std::string::npos, written.bytes.size() - kHeader - 19, '\0');
  CHECK_FALSE(written.describe(zeros).has_value());
}

TEST_CASE("every read detects a flipped bit anywhere in a file") {
  Written written(abc());
  for (std::size_t bit = 0; bit < written.bytes.size() * 8; ++bit) {
    std::string flipped = written.bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    const std::size_t at = bit / 8;
    const bool salted = at < 40, in_piece = at >= kHeader && at < kHeader + 19;
    CAPTURE(bit);
    REQUIRE(written.describe(flipped).has_value() == in_piece);
    REQUIRE(written.read(flipped, 0, 3).has_value() == !(salted || in_piece));
  }
}

TEST_CASE("content that does not match the digest in its name leaves no complete file") {
  Made made = segment(5, 300'000, 7'000);
  Made other = segment(6, 300'000);
  TemporaryFolder folder;
  const std::string path = (folder.path() / "file").string();
  auto written = write_segment(system_files(), path, known_key(), known_salt(), made.name, other.parts, {});
  CHECK(written.error() == StoreError::wrong_digest);
  CHECK_FALSE(
      read_description(system_files(), path, known_key(), std::filesystem::file_size(path)).has_value());
  made.parts.pop_back();
  std::filesystem::remove(path);
  written = write_segment(system_files(), path, known_key(), known_salt(), made.name, made.parts, {});
  CHECK(written.error() == StoreError::wrong_digest);
}

TEST_CASE("a record is read back, and nothing else is accepted as one") {
  Made made = abc();
  Record record{.number = 9, .file_bytes = segment_file_bytes(3, 1), .name = made.name, .hooks = made.hooks};
  const DictionaryKey key = known_key();
  Buffer value = encode_record(key, known_salt(), record).value();
  auto decoded = decode_record(key, 9, value);
  REQUIRE(decoded.has_value());
  CHECK(decoded->name == made.name);
  CHECK(decoded->file_bytes == record.file_bytes);
  CHECK(decoded->hooks.size() == 1);
  CHECK(as_text(value).find(as_text(made.name.digest)) == std::string_view::npos);
  CHECK_FALSE(decode_record(key, 10, value).has_value());
  CHECK_FALSE(decode_record(known_key(1), 9, value).has_value());
  for (std::size_t size = 0; size < value.size(); ++size)
    CHECK_FALSE(decode_record(key, 9, Bytes(value).first(size)).has_value());
  for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
    Buffer flipped = value;
    flipped[bit / 8] ^= std::byte(1 << bit % 8);
    CHECK_FALSE(decode_record(key, 9, flipped).has_value());
  }
  value.push_back(std::byte{0});
  CHECK_FALSE(decode_record(key, 9, value).has_value());
}

TEST_CASE("a name is read back, and an impossible length is refused") {
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
