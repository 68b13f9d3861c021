// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_writer.h"

#include <catch2/catch.hpp>
#include <string>

#include "codecs/bytes.h"
#include "proxy/link/record_parser.h"
#include "table_of_streams.h"
#include "toy_codec.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

constexpr CarrierId kOneCarrier{1};

// The records that a carrier took, as text: data as it is, others as [type:body].
struct TakenRecords final : RecordSink {
  Result<void> on_data(Bytes plain) override {
    text += as_text(plain);
    return {};
  }
  Result<void> on_record(RecordType type, Bytes body) override {
    text += '[' + std::to_string(static_cast<int>(type)) + ':' + std::string(as_text(body)) + ']';
    return {};
  }
  std::string text;
};

struct OneWriter : longhaul::link::testing::TableOfStreams {
  explicit OneWriter(BlockCodec* codec = nullptr) : blocks(1_stream, codec), writer(entry, context, blocks) {}

  // As a carrier takes it.
  void send(std::size_t most = 1 << 20) {
    while (most > 0) {
      writer.output().prepare_to_send(most);
      const auto range = writer.output().sending().next(most);
      if (!range) return;
      Buffer wire;
      writer.output().sending().copy(*range, wire);
      writer.output().sending().on_sent(*range, kOneCarrier);
      most -= wire.size();
      REQUIRE(parser.feed(wire, taken).has_value());
    }
  }
  void acknowledge_all() { writer.on_acknowledged(writer.output().sending().ever_sent()); }
  std::size_t times_told(EventKind kind) const {
    return static_cast<std::size_t>(std::ranges::count(owner.told, std::pair(1_stream, kind)));
  }

  StreamEntry entry{1_stream};
  StreamBlocks blocks;
  StreamWriter writer;
  RecordParser parser;
  TakenRecords taken;
};

}  // namespace

TEST_CASE("a flow that used its credit up is told of more, and only then") {
  OneWriter one;
  one.writer.grant(100);
  CHECK(one.writer.may_write() == 100);
  one.writer.write(Buffer(60));
  CHECK(one.writer.may_write() == 40);
  CHECK(one.writer.on_credit(1, 120).raised);
  CHECK(one.times_told(EventKind::writable) == 0);
  one.writer.write(Buffer(60));
  CHECK(one.writer.may_write() == 0);
  CHECK_FALSE(one.writer.on_credit(1, 500).raised);  // an older frame
  CHECK(one.times_told(EventKind::writable) == 0);
  CHECK(one.writer.on_credit(2, 130).raised);
  CHECK(one.times_told(EventKind::writable) == 1);
  CHECK(one.writer.may_write() == 10);
  SECTION("a flow that needs more than that is told again") {
    one.writer.wait_for_room();
    one.writer.on_credit(3, 200);
    CHECK(one.times_told(EventKind::writable) == 2);
  }
  SECTION("another one is not") {
    one.writer.on_credit(3, 200);
    CHECK(one.times_told(EventKind::writable) == 1);
  }
}

TEST_CASE("a flow that filled the backlog is told when half of it is sent") {
  OneWriter one;
  one.context.unsent_limit = 10'000;
  one.writer.grant(1 << 20);
  one.writer.write(Buffer(10'000));
  CHECK(one.writer.may_write() == 0);
  one.send(4000);
  one.writer.tell_if_writable();
  CHECK(one.times_told(EventKind::writable) == 0);
  one.send(2000);
  one.writer.tell_if_writable();
  one.writer.tell_if_writable();
  CHECK(one.times_told(EventKind::writable) == 1);
}

TEST_CASE("a flow that waits for memory is told when the peer acknowledges") {
  OneWriter one;
  one.context.unsent_limit = 8 << 20;
  one.writer.grant(8 << 20);
  while (const std::size_t room = one.writer.may_write()) one.writer.write(Buffer(room));
  one.send(8 << 20);
  CHECK(one.writer.may_write() == 0);
  CHECK(one.times_told(EventKind::writable) == 0);
  one.acknowledge_all();
  CHECK(one.times_told(EventKind::writable) == 1);
  CHECK(one.writer.may_write() > 0);
}

TEST_CASE("bytes are sent as records, however they are written, and each write announces them") {
  ToyCodec codec;
  const bool makes_blocks = GENERATE(false, true);
  OneWriter one(makes_blocks ? &codec : nullptr);
  if (makes_blocks) one.writer.output().use({});
  one.writer.grant(1 << 20);
  const std::string large(200'000, 'l'), in_place(5000, 'p');
  one.writer.write(as_bytes("copied "));
  one.writer.write(Slice::copy_of(as_bytes("small slice ")));
  one.writer.write(Slice::copy_of(as_bytes(large)));
  std::byte* memory = nullptr;
  Slice space = Slice::unfilled(StreamWriter::kRecordRoom + in_place.size(), memory);
  std::ranges::copy(as_bytes(in_place), memory + StreamWriter::kRecordRoom);
  one.writer.write_in_place(space, memory, in_place.size());
  one.writer.write_message(as_bytes("message"));
  one.writer.end();
  CHECK(one.owner.announced >= 6);
  one.send();
  if (makes_blocks) {
    std::size_t plain = 0;
    for (const std::size_t size : codec.sizes) plain += size;
    CHECK(plain == 19 + large.size() + in_place.size());
    CHECK(one.taken.text.ends_with("[4:message][5:]"));
    CHECK(codec.broken == "");
  } else {
    CHECK(one.taken.text == "copied small slice " + large + in_place + "[4:message][5:]");
  }
  one.acknowledge_all();
  CHECK(one.context.retained.bytes() == 0);
}

TEST_CASE("after its end a direction takes no more, and is complete when the peer has acknowledged it") {
  OneWriter one;
  one.writer.grant(1000);
  one.writer.write(as_bytes("bytes"));
  CHECK_FALSE(one.writer.is_complete());
  SECTION("the flow has ended it") {
    one.writer.end();
    one.writer.end();
    CHECK(one.writer.state() == WriteState::ended);
  }
  SECTION("its connection was reset") {
    one.writer.abort();
    CHECK(one.writer.state() == WriteState::aborted);
  }
  CHECK(one.writer.may_write() == 0);
  one.writer.write(as_bytes("more"));
  one.writer.write(Slice::copy_of(Buffer(20'000)));
  one.writer.write_message(as_bytes("more"));
  one.writer.end();
  one.send();
  CHECK((one.taken.text == "bytes[5:]" || one.taken.text == "bytes[6:]"));
  CHECK_FALSE(one.writer.is_complete());
  one.acknowledge_all();
  CHECK(one.writer.is_complete());
}

TEST_CASE("a direction that is dropped sends nothing more, is complete and keeps no memory") {
  OneWriter one;
  one.writer.grant(1000);
  one.writer.write(as_bytes("sent"));
  one.send();
  one.writer.write(as_bytes("waits"));
  one.writer.drop();
  CHECK(one.writer.state() == WriteState::reset);
  CHECK(one.writer.is_complete());
  CHECK(one.context.retained.bytes() == 0);
  one.send();
  CHECK(one.taken.text == "sent");
}

TEST_CASE("what was written behind the OPEN is taken back while no carrier has any of it") {
  OneWriter one;
  one.writer.open(as_bytes("request"), 1000, 300);
  CHECK(one.writer.open_credit() == 300);
  CHECK(one.writer.may_write() == 1000);
  one.send();
  CHECK(one.taken.text == "[0:request]");
  one.writer.write(as_bytes("order"));
  SECTION("none has") {
    const auto back = one.writer.take_back();
    REQUIRE(back);
    CHECK(as_text(*back) == "order");
  }
  SECTION("one has a byte") {
    one.send(2);
    CHECK_FALSE(one.writer.take_back());
  }
  SECTION("it has ended") {
    one.writer.end();
    CHECK_FALSE(one.writer.take_back());
  }
}

TEST_CASE("what a lost carrier had is announced again, and of an ended direction at least the last byte") {
  OneWriter one;
  const CarrierId left[] = {CarrierId(2)};
  one.writer.grant(1000);
  one.writer.write(as_bytes("bytes"));
  one.send();
  SECTION("sent on the lost one") {
    one.owner.announced = 0;
    one.writer.on_carriers_left(left);
    CHECK(one.owner.announced == 1);
    CHECK(one.writer.output().sending().repeats());
  }
  SECTION("sent on another one") {
    const CarrierId both[] = {CarrierId(2), kOneCarrier};
    one.owner.announced = 0;
    one.writer.on_carriers_left(both);
    CHECK(one.owner.announced == 0);
    one.writer.end();
    one.send();
    one.owner.announced = 0;
    one.writer.on_carriers_left(both);
    CHECK(one.owner.announced == 1);
    CHECK(one.writer.output().sending().repeats());
  }
}
