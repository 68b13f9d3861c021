// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/block_encoder.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

using namespace longhaul;
using namespace longhaul::reduction;

namespace {

std::string noise(std::size_t bytes) {
  std::mt19937 random(static_cast<unsigned>(bytes));
  std::string made(bytes, '\0');
  for (char& c : made) c = static_cast<char>(random());
  return made;
}

BlockEncoder welcomed() {
  BlockEncoder encoder(16u << 20, 1);
  REQUIRE(encoder.poll_message());
  REQUIRE(encoder.on_welcome({kVersion, 16u << 20}));
  return encoder;
}

}  // namespace

TEST_CASE("invalid answers from the peer end the session") {
  BlockEncoder fresh(16u << 20, 1), none(0, 1);
  CHECK_FALSE(none.has_message());
  CHECK_FALSE(none.on_welcome({kVersion, 0}).has_value());
  CHECK_FALSE(fresh.on_welcome({kVersion, 16u << 20}).has_value());  // before HELLO went out
  REQUIRE(fresh.poll_message());
  CHECK_FALSE(fresh.on_welcome({kVersion, 17u << 20}).has_value());  // more than was asked for
  CHECK_FALSE(fresh.on_held({{{65'536, 65'537}}}).has_value());
  CHECK_FALSE(fresh.on_need({65'536, 1, Need::Reason::mismatch}).has_value());

  BlockEncoder encoder = welcomed();
  CHECK_FALSE(encoder.on_welcome({kVersion, 16u << 20}).has_value());
  std::string plain = noise(1000);
  Buffer out;
  REQUIRE(encoder.encode(1, {}, as_bytes(plain), out));
  CHECK_FALSE(encoder.on_held({{{65'536, 66'537}}}).has_value());
  CHECK_FALSE(encoder.on_need({65'536, 1001, Need::Reason::mismatch}).has_value());
  CHECK_FALSE(encoder.on_need({0, 10, Need::Reason::mismatch}).has_value());
  CHECK(encoder.on_held({{{65'536, 66'536}}}).has_value());
}

TEST_CASE("a peer that requests blocks without end is cut off") {
  BlockEncoder encoder = welcomed();
  std::string plain = noise(1000);
  Buffer out;
  REQUIRE(encoder.encode(1, {}, as_bytes(plain), out));
  int taken = 0;
  while (taken < 200'000 && encoder.on_need({65'536, 1000, Need::Reason::mismatch})) ++taken;
  CHECK(taken < 100'000);
  CHECK(encoder.counters().restarts == 1);
  auto answer = encoder.poll_message();
  REQUIRE(answer);
  auto message = parse_message(answer->bytes());
  CHECK(as_text(std::get<PlainBlock>(*message).plain) == plain);
}

TEST_CASE("a peer can request no more than was sent") {
  BlockEncoder encoder = welcomed();
  Buffer out;
  for (int i = 0; i < 3; ++i) REQUIRE(encoder.encode(1, {}, as_bytes(noise(1000)), out));
  for (int i = 0; i < 3; ++i) CHECK(encoder.on_need({65'536, 1000, Need::Reason::unreachable}));
  CHECK_FALSE(encoder.on_need({65'536, 1, Need::Reason::unreachable}));
}

TEST_CASE("a peer that acknowledges the same blocks repeatedly is cut off") {
  BlockEncoder encoder = welcomed();
  Buffer out;
  for (int i = 0; i < 100; ++i) REQUIRE(encoder.encode(1, {}, as_bytes(noise(1000)), out));
  // The first one is not answered, and so all of them are remembered.
  const Held held{{{66'536, 65'536 + 100'000}}};
  int taken = 0;
  while (taken < 200'000 && encoder.on_held(held)) ++taken;
  CHECK(taken > 1);
  CHECK(taken < 1'000);
}

TEST_CASE("before the peer has answered, and after it declined, blocks contain no references") {
  BlockEncoder encoder(16u << 20, 1);
  std::string text;
  while (text.size() < 5000) text += "word " + std::to_string(text.size()) + " ";
  Buffer out;
  auto header = encoder.encode(1, {}, as_bytes(text), out);
  REQUIRE(header);
  CHECK(header->codec == kZstd);
  CHECK(header->ring_offset == 0);
  REQUIRE(encoder.poll_message());
  REQUIRE(encoder.on_welcome({kVersion, 0}));
  header = encoder.encode(1, {}, as_bytes(text), out);
  REQUIRE(header);
  CHECK(header->codec == kZstd);
  CHECK(encoder.ring() == nullptr);
}

TEST_CASE("tiny writes are sent unchanged") {
  BlockEncoder encoder = welcomed();
  Buffer out;
  for (std::size_t size = 1; size < 64; ++size)
    CHECK_FALSE(encoder.encode(1, {}, as_bytes(std::string(size, 'a')), out).has_value());
  CHECK(out.empty());
  CHECK(encoder.counters().passed_bytes == 63 * 32);
}

TEST_CASE("history from disk is used by the stream that loads it, and by others once the peer has it") {
  BlockEncoder encoder = welcomed();
  std::string old = noise(1'000'000);
  auto offset = encoder.append_history(1, as_bytes(old));
  REQUIRE(offset == kRingStart);
  encoder.announce_load(1, as_bytes("[load]"));
  std::string piece = old.substr(300'000, 50'000);
  Buffer out;
  auto header = encoder.encode(3, {}, as_bytes(piece), out);
  CHECK(encoder.last().copied_bytes == 0);
  out.clear();
  header = encoder.encode(1, {}, as_bytes(piece), out);
  REQUIRE(header);
  CHECK((header->codec & kLoads) != 0);
  CHECK(as_text(Bytes(out).subspan(1, 6)) == "[load]");
  CHECK(encoder.last().copied_bytes == piece.size());
  out.clear();
  header = encoder.encode(1, {}, as_bytes(old.substr(1000, 5000)), out);
  CHECK((header->codec & kLoads) == 0);
  REQUIRE(encoder.on_held({{{kRingStart, kRingStart + old.size()}}}));
  header = encoder.encode(5, {}, as_bytes(old.substr(600'000, 60'000)), out);
  CHECK(encoder.last().copied_bytes == 60'000);
}
