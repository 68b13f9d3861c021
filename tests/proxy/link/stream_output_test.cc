// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_output.h"

#include <catch2/catch.hpp>

#include "codecs/bytes.h"
#include "table_of_streams.h"
#include "toy_codec.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

struct OneOutput : longhaul::link::testing::TableOfStreams {
  explicit OneOutput(BlockCodec* codec = nullptr) : blocks(1_stream, codec), output(context, blocks) {}
  // As a carrier takes it.
  std::string send(std::size_t room = 1 << 20) {
    output.prepare_to_send(room);
    const auto range = output.sending().next(room);
    if (!range) return {};
    Buffer wire;
    output.sending().copy(*range, wire);
    output.sending().on_sent(*range, CarrierId(1));
    output.on_sent(wire.size(), context.now);
    return std::string(as_text(wire));
  }
  static Slice slice(std::string_view text) { return Slice::copy_of(as_bytes(text)); }

  StreamBlocks blocks;
  StreamOutput output;
};

}  // namespace

TEST_CASE("without a codec, or features that reduce, what is appended is sent as it is") {
  ToyCodec codec;
  OneOutput one(GENERATE(false, true) ? &codec : nullptr);
  config::Features features;
  features.compression = features.dedup_memory = features.dedup_disk = false;
  one.output.use(features);
  CHECK_FALSE(one.output.makes_blocks());
  CHECK_FALSE(one.output.wants_to_send());
  one.output.append(OneOutput::slice("head"));
  one.output.append(OneOutput::slice("body"));
  CHECK(one.output.unsent_bytes() == 8);
  CHECK(one.context.retained.bytes() == 8);
  CHECK(one.send() == "headbody");
  CHECK_FALSE(one.output.wants_to_send());
  CHECK_FALSE(one.output.all_acknowledged());
  one.output.on_acknowledged(8_offset);
  CHECK(one.output.all_acknowledged());
  CHECK(one.context.retained.bytes() == 0);
}

TEST_CASE("isolated bytes are only compressed, in blocks of their own") {
  ToyCodec codec;
  OneOutput one(&codec);
  one.output.use({});
  one.output.write(OneOutput::slice("header"), true);
  one.output.write(OneOutput::slice("content"));
  one.send(1);
  CHECK(codec.sizes == std::vector<std::size_t>{6});
  CHECK_FALSE(codec.last_stages.dedup_memory);
  CHECK_FALSE(codec.last_stages.dedup_disk);
  CHECK(codec.last_stages.compression);
  one.output.encode_all();
  CHECK(codec.sizes == std::vector<std::size_t>{6, 7});
  CHECK(codec.last_stages.dedup_memory);
  SECTION("and plain where nothing is compressed") {
    config::Features features;
    features.compression = false;
    one.output.use(features);
    one.output.write(OneOutput::slice("header"), true);
    one.output.encode_all();
    CHECK(codec.sizes.size() == 2);
  }
}

TEST_CASE("bytes wait until they are sent, and records behind them wait with them") {
  ToyCodec codec;
  OneOutput one(&codec);
  one.output.use({});
  REQUIRE(one.output.makes_blocks());
  one.output.write(as_bytes("one"));
  one.output.write(as_bytes("two"));
  one.output.append(OneOutput::slice("record"));
  CHECK(codec.sizes.empty());
  CHECK(one.output.unsent_bytes() == 12);
  const std::string wire = one.send();
  CHECK(codec.sizes == std::vector<std::size_t>{6});
  CHECK((wire.size() > 12 && wire.ends_with("record")));
  CHECK(one.context.retained.bytes() == one.output.retained_bytes());
  one.output.on_acknowledged(StreamOffset(wire.size()));
  CHECK(one.context.retained.bytes() == 0);
}

TEST_CASE("the first block after a pause is sent before the others are made") {
  ToyCodec codec;
  OneOutput one(&codec);
  one.output.use({});
  one.output.write(Buffer(10'000));
  CHECK(one.output.prepare_to_send(1 << 20));
  CHECK(codec.sizes == std::vector<std::size_t>{StreamContext::kMinFirstBlock});
  CHECK_FALSE(one.output.prepare_to_send(1 << 20));
  CHECK(codec.sizes.size() > 1);
  CHECK(one.output.sending().unsent_bytes() == one.output.unsent_bytes());
}

TEST_CASE("all bytes become blocks at once if the counters are read for the last time") {
  ToyCodec codec;
  OneOutput one(&codec);
  one.output.use({});
  one.output.write(Buffer(100'000));
  one.output.encode_all();
  CHECK(one.blocks.counters().out.plain == 100'000);
}

TEST_CASE("a change of features waits behind the bytes that were written before it") {
  ToyCodec codec;
  OneOutput one(&codec);
  one.output.use({});
  one.output.write(as_bytes("before"));
  config::Features features;
  features.compression = features.dedup_memory = features.dedup_disk = false;
  one.output.use(features);
  CHECK(one.output.makes_blocks());
  one.output.encode_all();
  CHECK_FALSE(one.output.makes_blocks());
  CHECK(codec.sizes.empty());
}

TEST_CASE("the room is what the backlog and the memory leave") {
  OneOutput one;
  one.context.unsent_limit = 1000;
  CHECK(one.output.room() == 1000);
  one.output.append(Slice::copy_of(Buffer(700)));
  CHECK(one.output.room() == 300);
  (void)one.send();
  CHECK(one.output.room() == 1000);
  one.output.append(Slice::copy_of(Buffer(1200)));
  CHECK(one.output.room() == 0);
  one.output.drop();
  CHECK(one.output.room() == 1000);
  one.context.retained.add(1 << 20);
  CHECK(one.output.room() == 1000);  // something always
  one.context.unsent_limit = 1 << 20;
  CHECK(one.output.room() < 10'000);
  one.context.retained.remove(1 << 20);
}

TEST_CASE("what no carrier got can be taken back, with blocks and without") {
  ToyCodec codec;
  const bool reduces = GENERATE(false, true);
  OneOutput one(reduces ? &codec : nullptr);
  one.output.append(OneOutput::slice("open"));
  one.output.use({});
  Buffer head;
  write_record_head(RecordType::data, 5, head);
  auto write = [&] {
    if (reduces) return one.output.write(as_bytes("plain"));
    one.output.append(Slice::joined(head, as_bytes("plain")));
  };
  SECTION("data") {
    CHECK(one.send() == "open");
    write();
    write();
    const auto back = one.output.take_back(4_offset);
    REQUIRE(back);
    CHECK(as_text(*back) == "plainplain");
  }
  SECTION("but no other record") {
    write();
    Buffer message;
    write_record_head(RecordType::module, 0, message);
    one.output.append(Slice::copy_of(message));
    CHECK_FALSE(one.output.take_back(4_offset));
  }
  SECTION("and nothing once a carrier got some of it") {
    write();
    (void)one.send(6);
    (void)one.send(6);
    CHECK_FALSE(one.output.take_back(4_offset));
  }
  CHECK(one.context.retained.bytes() == one.output.retained_bytes());
}

TEST_CASE("an output that ends gives its memory back") {
  ToyCodec codec;
  longhaul::link::testing::TableOfStreams streams;
  {
    StreamBlocks blocks(1_stream, &codec);
    StreamOutput output(streams.context, blocks);
    output.use({});
    output.append(OneOutput::slice("open"));
    output.write(Buffer(5000));
    CHECK(streams.context.retained.bytes() == 5004);
  }
  CHECK(streams.context.retained.bytes() == 0);
}
