// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/compression.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/codecs/reduction/deflated_streams.h"

namespace longhaul::reduction {
namespace {

constexpr std::uint64_t kSlow = 193'000;  // bytes a second: a T1

std::string random_of(std::size_t size) {
  std::mt19937_64 random(11);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() >> 32);
  return bytes;
}

std::string text_of_lines(std::size_t size) {
  std::mt19937_64 random(12);
  std::string text;
  while (text.size() < size) text += "line " + std::to_string(random() % 10'000) + " of the report\n";
  text.resize(size);
  return text;
}

// One block's content, after a byte of others.
struct Compressed {
  std::uint8_t codec = kInRing;
  EncodedBlock fields;
  Buffer out{std::byte{7}};

  Compressed(Compression& compression, const std::string& content, const Compression::Context& context = {}) {
    fields.content_bytes = static_cast<std::uint32_t>(content.size());
    compression.compress(trials, context, as_bytes(content), codec, fields, out);
  }
  bool is_unchanged() const { return codec == kInRing && out == Buffer{std::byte{7}}; }
  ZstdTrials trials;
};

EncoderCounters counters_of(const Compression& compression) {
  EncoderCounters counters;
  compression.fill(counters);
  return counters;
}

}  // namespace

TEST_CASE("content that shrinks is appended as a frame, with its context if it has one") {
  Compression compression;
  const std::string text = text_of_lines(9'000);
  const Compressed alone(compression, text);
  CHECK(alone.codec == (kInRing | kZstd));
  CHECK(alone.out.size() < text.size() / 2);
  Buffer plain(text.size());
  CHECK(zstd_decompress({}, Bytes(alone.out).subspan(1), plain) == text.size());
  CHECK(std::equal(plain.begin(), plain.end(), as_bytes(text).begin()));
  const Compressed after(compression, text, {.bytes = as_bytes(text), .distance = 77});
  CHECK(after.codec == (kInRing | kZstd | kContext));
  CHECK(after.fields.context_bytes == text.size());
  CHECK(after.fields.context_distance == 77);
  CHECK(after.out.size() < 100);
  CHECK(counters_of(compression).compressed_bytes == 2 * text.size());
  CHECK(counters_of(compression).incompressible_blocks == 0);
}

TEST_CASE("content that does not shrink, or is short, is left alone") {
  Compression compression;
  CHECK(Compressed(compression, random_of(9'000)).is_unchanged());
  CHECK(counters_of(compression).incompressible_blocks == 1);
  CHECK(Compressed(compression, std::string(Compression::kMinBytes - 1, 'x')).is_unchanged());
  CHECK(counters_of(compression).incompressible_blocks == 1);
  CHECK_FALSE(Compressed(compression, std::string(Compression::kMinBytes, 'x')).is_unchanged());
}

TEST_CASE("deflate streams are opened on a slow line, if the twin can close them") {
  const std::string packed = gzipped(text_of_lines(20'000));
  Compression compression;
  compression.set_line_rate(kSlow);
  Compressed closed(compression, packed);
  CHECK_FALSE(closed.codec & kOpened);
  compression.allow_opening(true);
  const Compressed opened(compression, packed);
  CHECK(opened.codec & kOpened);
  CHECK(opened.fields.content_bytes > packed.size());
  CHECK(opened.out.size() < packed.size());
  CHECK(counters_of(compression).opened_bytes == packed.size());
  compression.set_line_rate(125'000'000);
  CHECK_FALSE(Compressed(compression, packed).codec & kOpened);
}

TEST_CASE("the level suits the line, less what relieves the processor") {
  Compression compression;
  compression.set_line_rate(kSlow);
  CHECK(compression.effort().level == zstd_effort(kSlow).level);
  compression.set_relief(2);
  CHECK(compression.effort().level == zstd_effort(kSlow, 2).level);
  CHECK(compression.effort().level < zstd_effort(kSlow).level);
  compression.set_line_rate(2 * kSlow);
  CHECK(compression.effort().level == zstd_effort(2 * kSlow, 2).level);
  CHECK(counters_of(compression).zstd_relief == 2);
  CHECK(counters_of(compression).zstd_level == compression.effort().level);
}

}  // namespace longhaul::reduction
