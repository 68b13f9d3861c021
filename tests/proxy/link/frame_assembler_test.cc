// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/frame_assembler.h"

#include <catch2/catch.hpp>
#include <random>

#include "numbers.h"

using namespace longhaul;
using namespace longhaul::link;

namespace {

// What came out, in words, so that two ways of cutting can be compared.
struct Taken {
  std::string text;
  Result<void> operator()(const StreamFrame& frame) {
    text +=
        "stream " + std::to_string(frame.stream.number()) + " " + std::string(as_text(frame.payload)) + ";";
    return {};
  }
  Result<void> operator()(const Frame& frame) {
    text += "frame " + std::to_string(frame.index()) + ";";
    return {};
  }
};

Buffer some_frames(std::mt19937& random, int count) {
  Buffer wire;
  for (int i = 0; i < count; ++i) {
    switch (random() % 4) {
      case 0:
        write_frame(PingFrame{random()}, wire);
        break;
      case 1: {
        const Buffer unknown{std::byte{99}, std::byte{3}, std::byte{1}, std::byte{2}, std::byte{3}};
        append(wire, unknown);
        break;
      }
      default: {
        const Buffer payload(random() % 200, std::byte{'x'});
        write_frame(StreamFrame{StreamId(random() % 50), StreamOffset(0), payload}, wire);
      }
    }
  }
  return wire;
}

}  // namespace

TEST_CASE("however the input is cut, the same frames come out, and unknown ones are skipped") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Buffer wire = some_frames(random, 30);
    Taken whole, cut;
    REQUIRE(FrameAssembler().feed(wire, whole));
    FrameAssembler assembler;
    const std::size_t most = seed % 3 == 0 ? 1 : 1 + random() % 300;
    for (std::size_t at = 0; at < wire.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random() % most, wire.size() - at);
      REQUIRE(assembler.feed(Bytes(wire).subspan(at, size), cut));
      at += size;
    }
    CHECK(cut.text == whole.text);
    CHECK_FALSE(whole.text.empty());
  }
}

TEST_CASE("an error of the input, or of the frames' reader, ends the assembly") {
  Taken taken;
  Buffer wire;
  write_frame(PingFrame{1}, wire);
  ByteWriter writer(wire);
  writer.u8(static_cast<std::uint8_t>(FrameType::stream));
  writer.varint(kMaxFrameBody + 1);
  CHECK(FrameAssembler().feed(wire, taken).error() == LinkError::frame_too_large);
  // The same where the length arrives byte by byte: at the next byte at the latest.
  wire.push_back(std::byte{0});
  FrameAssembler assembler;
  Result<void> fed;
  for (std::size_t at = 0; at < wire.size() && fed; ++at)
    fed = assembler.feed(Bytes(wire).subspan(at, 1), taken);
  CHECK(fed.error() == LinkError::frame_too_large);

  int frames = 0;
  const auto refuse = [&](const auto&) -> Result<void> {
    ++frames;
    return LinkError::credit_exceeded;
  };
  Buffer two;
  write_frame(PingFrame{1}, two);
  write_frame(PingFrame{2}, two);
  CHECK(FrameAssembler().feed(two, refuse).error() == LinkError::credit_exceeded);
  CHECK(frames == 1);
}
