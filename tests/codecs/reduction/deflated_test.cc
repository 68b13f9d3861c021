// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/deflated.h"

#include <random>

#include "codecs/work.h"
#include "tests/codecs/reduction/deflated_streams.h"
#include "tests/codecs/reduction/twins.h"

namespace longhaul::reduction {
namespace {

// What opening makes of it, closed again; how many bytes more it has, opened.
std::size_t opened_by(std::string_view content) {
  Buffer out = {std::byte{7}};
  if (!open_deflated(as_bytes(content), out)) {
    CHECK(out.size() == 1);
    return 0;
  }
  REQUIRE(out[0] == std::byte{7});
  Bytes opened = Bytes(out).subspan(1);
  CHECK(opened.size() <= kMaxOpenedBytes);
  Buffer closed(content.size());
  REQUIRE(close_deflated(opened, closed) == content.size());
  CHECK(as_text(closed) == content);
  // One byte less of room is too little.
  CHECK_FALSE(close_deflated(opened, MutableBytes(closed).first(content.size() - 1)));
  return opened.size() - content.size();
}

std::string zip_member(std::string_view plain, int level) {
  std::string head("PK\3\4\x14\0\0\0\x08\0\0\0\0\0", 14);
  head[6] = static_cast<char>(level == 9 ? 2 : level == 1 ? 6 : 0);
  head += std::string(12, '\1');  // checksum and sizes, which are not checked
  head += std::string("\5\0\3\0", 4) + "a.txt" + "xyz";
  return head + deflated(plain, {.level = level});
}

TEST_CASE("gzip, zip and zlib streams are unpacked and packed again to the same bytes") {
  Traffic traffic(1);
  for (std::size_t size : {1'000u, 5'000u, 60'000u, 120'000u}) {
    std::string text = traffic.text(size);
    for (int level : {1, 6, 9}) {
      INFO("level " << level << ", " << size << " bytes");
      std::string zlib = deflated(text, {.level = level, .window_bits = 15});
      for (const std::string& stream : {gzipped(text, level), zip_member(text, level), zlib}) {
        REQUIRE(stream.size() < 65'000);
        CHECK(opened_by(stream) > text.size() / 3);
        CHECK(opened_by("before" + stream + "behind") > text.size() / 3);
      }
    }
  }
}

TEST_CASE("several streams in one block are unpacked, whether adjacent or between other bytes") {
  Traffic traffic(2);
  std::string block;
  while (block.size() < 50'000) {
    block += gzipped(traffic.text(2000 + 37 * (block.size() % 100)));
    if (block.size() % 3 == 0) block += traffic.noise(block.size() % 700);
  }
  CHECK(opened_by(block) > 30'000);
}

TEST_CASE("a stream that does not end in the block, or is invalid, stays as it is") {
  Traffic traffic(3);
  std::string stream = gzipped(traffic.text(100'000));
  CHECK(opened_by(stream.substr(0, stream.size() / 2)) == 0);
  CHECK(opened_by(stream.substr(3)) == 0);
  CHECK(opened_by("") == 0);
  CHECK(opened_by("\x1f\x8b") == 0);
  CHECK(opened_by(std::string("\x1f\x8b\x08\0\0\0\0\0\2\3", 10)) == 0);
  CHECK(opened_by(traffic.noise(65'536)) == 0);
  CHECK(opened_by(traffic.text(65'536)) == 0);
  CHECK(opened_by(gzipped(traffic.noise(20'000))) == 0);
  std::string alike(65'536, '\x78');
  for (std::size_t i = 1; i < alike.size(); i += 2) alike[i] = '\x9c';
  CHECK(opened_by(alike) == 0);
}

TEST_CASE("a stream that zlib would pack differently is not unpacked") {
  Traffic traffic(4);
  // Cut into other blocks than those of the usual memory.
  std::string text = traffic.text(120'000);
  std::string stream = deflated(text, {.level = 9, .window_bits = 15 + 16, .memory = 4});
  REQUIRE(stream.size() < 65'536);
  CHECK(opened_by(stream) == 0);
  // Two ends of two streams.
  std::string one = gzipped(text.substr(0, 20'000)), other = gzipped(text.substr(5'000, 20'000));
  opened_by(one.substr(0, 3'000) + other.substr(3'000));
}

TEST_CASE("a stream that expands beyond the bound stays as it is") {
  std::string bomb = gzipped(std::string(kMaxOpenedBytes, 'a'));
  CHECK(opened_by(bomb) == 0);
  std::string most = gzipped(std::string(kMaxOpenedBytes - 4096, 'a'));
  CHECK(opened_by(most) > kMaxOpenedBytes / 2);
  // One is opened, for a second one there is no room.
  CHECK(opened_by(most + most) < kMaxOpenedBytes);
}

TEST_CASE("a stream that zlib would pack slowly is neither unpacked nor packed") {
  // Two letters in no order: as many candidates at each position as the level looks at.
  std::mt19937 random(9);
  std::string slow(200'000, 'a');
  for (char& c : slow) c = random() % 2 ? 'b' : 'a';
  CHECK(closing_steps(as_bytes(slow), 9) > 30 * kMaxClosingSteps);
  CHECK(opened_by(gzipped(slow, 9)) == 0);
  CHECK(opened_by(gzipped(slow.substr(0, 100'000), 6)) > 0);
  Buffer map, opened;
  ByteWriter writer(map);
  const std::size_t size = deflated(slow).size();
  writer.varint(0), writer.varint(slow.size()), writer.varint(size), writer.u8(9);
  ByteWriter(opened).sized(map);
  append(opened, as_bytes(slow));
  Buffer content(kMaxBlockPlainBytes);
  const std::uint64_t before = work_done;
  CHECK_FALSE(close_deflated(opened, content));
  CHECK(work_done - before < 4 * slow.size());
}

TEST_CASE("the bound leaves text and runs of one byte unchanged") {
  Traffic traffic(10);
  const std::string text = traffic.text(200'000), zeros(200'000, '\0');
  for (int level = 1; level <= 9; ++level) {
    CHECK(closing_steps(as_bytes(text), level) < kMaxClosingSteps);
    CHECK(closing_steps(as_bytes(zeros), level) < kMaxClosingSteps);
  }
  CHECK(closing_steps({}, 9) == 0);
  CHECK(closing_steps(as_bytes("ab"), 9) == 0);
  CHECK(closing_steps(as_bytes("abcabcabc"), 9) == 0 + 0 + 0 + 1 + 1 + 1 + 2);
  // Runs that are shorter than the longest match, and one that is as long.
  CHECK(closing_steps(as_bytes(std::string(6, 'a')), 9) == 0 + 1 + 2 + 3);
  CHECK(closing_steps(as_bytes(std::string(258 + 1, 'a')), 1) == 0);
}

TEST_CASE("impossible unpacked content is refused") {
  auto closes = [](std::string_view map, std::string_view bytes) {
    Buffer opened;
    ByteWriter(opened).sized(as_bytes(map));
    append(opened, as_bytes(bytes));
    Buffer content(1000);
    return close_deflated(opened, content).has_value();
  };
  std::string text(400, 'a');
  std::string varint400 = "\x41\x90", deflated_bytes;
  const std::size_t size = deflated(text).size();
  CHECK(size < 64);  // too short to be opened, and so refused
  CHECK_FALSE(closes(std::string("\0", 1) + varint400 + static_cast<char>(size) + "\x09", text));
  Traffic traffic(5);
  text = traffic.text(400);
  Buffer map;
  ByteWriter writer(map);
  auto piece = [&](std::size_t gap, std::size_t plain, std::size_t bytes, unsigned level) {
    map.clear();
    writer.varint(gap), writer.varint(plain), writer.varint(bytes),
        writer.u8(static_cast<std::uint8_t>(level));
    return std::string(as_text(map));
  };
  const std::size_t right = deflated(text).size();
  REQUIRE(right >= 64);
  CHECK(closes(piece(0, 400, right, 9), text));
  CHECK(closes(piece(5, 400, right, 9), "12345" + text + "behind"));
  CHECK_FALSE(closes("", text));
  CHECK_FALSE(closes(piece(0, 400, right + 1, 9), text));
  CHECK_FALSE(closes(piece(0, 400, right - 1, 9), text));
  CHECK_FALSE(closes(piece(0, 401, right, 9), text));
  CHECK_FALSE(closes(piece(1, 400, right, 9), text));
  CHECK_FALSE(closes(piece(0, 400, 900'000, 9), text));
  CHECK_FALSE(closes(piece(kMaxVarint, 400, right, 9), text));
  CHECK_FALSE(closes(piece(0, kMaxVarint, right, 9), text));
  CHECK_FALSE(closes(piece(0, 400, right, 0), text));
  CHECK_FALSE(closes(piece(0, 400, right, 10), text));
  CHECK_FALSE(closes(piece(0, 400, right, 9) + "\x01", text));
  CHECK_FALSE(closes(piece(0, 400, right, 9), text + std::string(1000, 'x')));
}

TEST_CASE("on a slow line the content of deflate streams is compressed in place of the streams") {
  std::uint64_t rate = GENERATE(193'000ull, 6'480'000ull, 125'000'000ull);
  Twins twins(6);
  twins.meet();
  twins.side(0).set_line_rate(rate);
  Traffic traffic(6);
  std::string all;
  while (all.size() < 400'000) all += gzipped(traffic.text(3'000)) + traffic.text(100);
  for (std::size_t at = 0; at < all.size(); at += 65'536)
    twins.write(0, 4, std::string_view(all).substr(at, 65'536));
  twins.settle();
  CHECK(twins.delivered_bytes(0) == all.size());
  const std::uint64_t opened = twins.side(0).counters().encoder.opened_bytes;
  if (rate < 13'000'000) {
    CHECK(opened > all.size() / 2);
    CHECK(twins.wire_bytes(0) < all.size() * 8 / 10);
  } else {
    CHECK(opened == 0);
  }
  CHECK(twins.side(1).counters().decoder.needs == 0);
  // Repeats are found all the same: the history has the bytes as they were.
  const std::uint64_t before = twins.wire_bytes(0);
  for (std::size_t at = 0; at < all.size(); at += 65'536)
    twins.write(0, 8, std::string_view(all).substr(at, 65'536));
  twins.settle();
  CHECK(twins.wire_bytes(0) - before < all.size() / 50);
}

TEST_CASE("no stream is unpacked for a peer whose zlib differs or that does not report its version") {
  const std::uint64_t print = GENERATE(0ull, 1ull);
  BlockEncoder encoder(16u << 20, 1);
  REQUIRE(encoder.poll_message());
  REQUIRE(encoder.on_welcome({kVersion, 16u << 20, print ? deflate_print() + 1 : 0}));
  encoder.compression().set_line_rate(193'000);
  Traffic traffic(7);
  std::string block = gzipped(traffic.text(20'000));
  Buffer out;
  auto header = encoder.encode(4, {}, as_bytes(block), out);
  REQUIRE(header);
  CHECK_FALSE(header->codec & kOpened);
  CHECK(encoder.counters().opened_bytes == 0);
}

TEST_CASE("after a deflate mismatch no stream is unpacked any more") {
  BlockEncoder encoder(16u << 20, 1);
  REQUIRE(encoder.poll_message());
  REQUIRE(encoder.on_welcome({kVersion, 16u << 20, deflate_print()}));
  encoder.compression().set_line_rate(193'000);
  Traffic traffic(8);
  Buffer out;
  std::string block = gzipped(traffic.text(20'000));
  auto header = encoder.encode(4, {}, as_bytes(block), out);
  REQUIRE(header);
  CHECK(header->codec & kOpened);
  REQUIRE(encoder.on_need({header->ring_offset, header->plain_bytes, Need::Reason::mismatch}));
  out.clear();
  block = gzipped(traffic.text(20'000));
  header = encoder.encode(4, {}, as_bytes(block), out);
  CHECK((!header || !(header->codec & kOpened)));
}

}  // namespace
}  // namespace longhaul::reduction
