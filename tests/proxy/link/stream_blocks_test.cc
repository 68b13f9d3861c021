// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_blocks.h"

#include <catch2/catch.hpp>

#include "codecs/bytes.h"
#include "numbers.h"
#include "proxy/link/record_parser.h"
#include "toy_codec.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

// The body of the one record in `wire`.
struct BlockBody final : RecordSink {
  explicit BlockBody(const Slice& wire) {
    RecordParser parser;
    REQUIRE(parser.feed(wire.bytes(), *this).has_value());
  }
  Result<void> on_data(Bytes) override { return LinkError::malformed_record; }
  Result<void> on_record(RecordType type, Bytes record) override {
    CHECK(type == RecordType::block);
    bytes.assign(record.begin(), record.end());
    return {};
  }
  Buffer bytes;
};

}  // namespace

TEST_CASE("a block is restored by the other side, and both count it") {
  ToyCodec here, there;
  StreamBlocks sender(1_stream, &here), receiver(1_stream, &there);
  const auto wire = sender.encode({}, as_bytes("some bytes"));
  REQUIRE(wire);
  const BlockBody body(*wire);
  const auto block = parse_block(body.bytes);
  REQUIRE(block.has_value());
  const auto plain = receiver.decode(*block);
  REQUIRE((plain && *plain));
  CHECK(as_text((*plain)->bytes()) == "some bytes");
  CHECK(sender.counters().out.blocks == 1);
  CHECK(sender.counters().out.plain == 10);
  CHECK(sender.counters().out.encoded == wire->size());
  CHECK(receiver.counters().in.blocks == 1);
  CHECK(receiver.counters().in.plain == 10);
  CHECK(here.broken + there.broken == "");
}

TEST_CASE("a block that is not worth it is not counted") {
  ToyCodec codec({.passes = 1});
  StreamBlocks blocks(1_stream, &codec);
  CHECK_FALSE(blocks.encode({}, as_bytes("some bytes")));
  CHECK(blocks.counters() == BlockCounters{});
}

TEST_CASE("decoding tells 'not yet' from 'never'") {
  ToyCodec here, there;
  StreamBlocks sender(1_stream, &here), receiver(1_stream, &there), none(1_stream, nullptr);
  const BlockBody body(*sender.encode({}, as_bytes("some bytes")));
  ParsedBlock block = *parse_block(body.bytes);
  SECTION("without a codec never") {
    CHECK_FALSE(none.possible());
    CHECK(none.decode(block).has_error());
  }
  SECTION("while the codec waits not yet") {
    there.hold_back = true;
    const auto plain = receiver.decode(block);
    REQUIRE(plain.has_value());
    CHECK_FALSE(plain->has_value());
  }
  SECTION("with another size than the header says never") {
    block.header.plain_bytes = 9;
    CHECK(receiver.decode(block).has_error());
  }
  CHECK(receiver.counters() == BlockCounters{});
}

TEST_CASE("the codec is told once that a stream is over, and only if it knows the stream") {
  ToyCodec codec;
  {
    StreamBlocks unused(1_stream, &codec), used(3_stream, &codec);
    (void)used.encode({}, as_bytes("x"));
    unused.stop_encoding();
    used.stop_encoding();
    CHECK(codec.stopped == std::set<std::uint64_t>{3});
    used.forget();
    used.forget();
    used.stop_encoding();
  }
  CHECK(codec.forgotten() == std::set<std::uint64_t>{3});
  CHECK(codec.broken == "");
}
