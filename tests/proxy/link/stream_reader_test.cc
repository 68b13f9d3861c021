// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_reader.h"

#include <catch2/catch.hpp>
#include <string>

#include "codecs/bytes.h"
#include "table_of_streams.h"
#include "toy_codec.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;
using namespace std::chrono_literals;

namespace {

// Its records come back to it, as from a stream that has nothing else to do with them.
struct OneReader : longhaul::link::testing::TableOfStreams, RecordSink {
  explicit OneReader(BlockCodec* codec = nullptr) : blocks(1_stream, codec), reader(entry, context, blocks) {}

  Result<void> on_data(Bytes plain) override {
    return reader.discards() ? Result<void>{} : reader.on_data(plain);
  }
  Result<void> on_record(RecordType type, Bytes body) override {
    if (type == RecordType::module) return reader.on_message(body);
    if (type == RecordType::end) return reader.finish(ReadState::ended), Result<void>{};
    const auto block = reader.on_block(body);
    if (!block) return block.error();
    last_block = *block;
    return {};
  }
  bool waits() const override { return pauses || reader.waits_for_block(); }

  Result<void> receive(RecordType type, std::string_view body) {
    Buffer wire;
    write_record_head(type, body.size(), wire);
    append(wire, as_bytes(body));
    return receive(wire);
  }
  Result<void> receive(Bytes wire) {
    const std::uint64_t at = sent;
    sent += wire.size();
    return reader.take(StreamOffset(at), wire, now, *this);
  }
  std::string read() {
    std::string text;
    while (!reader.readable().empty()) {
      const Slice piece = reader.readable().front();
      text += as_text(piece.bytes());
      reader.consume(piece.size(), now, 40ms);
    }
    return text;
  }
  std::size_t times_told(EventKind kind) const {
    return static_cast<std::size_t>(std::ranges::count(owner.told, std::pair(1_stream, kind)));
  }

  StreamEntry entry{1_stream};
  StreamBlocks blocks;
  StreamReader reader;
  TimePoint now{1h};
  std::uint64_t sent = 0;
  bool pauses = false;
  std::optional<StreamReader::Block> last_block;
};

}  // namespace

TEST_CASE("the peer's data and messages are announced and read in order, then its end") {
  OneReader one;
  CHECK(one.reader.open(0).announced_limit() > 100);
  REQUIRE(one.receive(RecordType::data, "before"));
  REQUIRE(one.receive(RecordType::module, "message"));
  REQUIRE(one.receive(RecordType::data, "after"));
  CHECK(one.times_told(EventKind::readable) == 3);
  REQUIRE(one.receive(RecordType::end, ""));
  CHECK(one.times_told(EventKind::readable) == 4);
  CHECK(one.reader.readable_before_message() == 6);
  CHECK_FALSE(one.reader.poll_message(one.now, 40ms));
  one.reader.consume(6, one.now, 40ms);
  const auto message = one.reader.poll_message(one.now, 40ms);
  REQUIRE(message);
  CHECK(as_text(message->bytes()) == "message");
  CHECK(one.read() == "after");
  CHECK(one.reader.state() == ReadState::ended);
  CHECK(one.reader.wire_received() == StreamOffset(one.sent));
}

TEST_CASE("credit is announced for what the flow has taken, while the peer may still use it") {
  OneReader one;
  one.reader.open(1000);
  REQUIRE(one.receive(RecordType::data, std::string(1000, 'x')));
  SECTION("it may") {
    CHECK(one.owner.credit_announced == 0);
    one.reader.consume(1000, one.now, 40ms);
    CHECK(one.owner.credit_announced == 1);
  }
  SECTION("more than it has is its error") {
    CHECK(one.receive(RecordType::data, "x").error() == LinkError::credit_exceeded);
  }
  SECTION("it has ended") {
    REQUIRE(one.receive(RecordType::end, ""));
    one.reader.consume(1000, one.now, 40ms);
    CHECK(one.owner.credit_announced == 0);
  }
  SECTION("for a message when it is taken") {
    one.reader.consume(1000, one.now, 40ms);
    REQUIRE(one.receive(RecordType::module, std::string(900, 'm')));
    one.owner.credit_announced = 0;
    one.now += 1s;
    REQUIRE(one.reader.poll_message(one.now, 40ms));
    CHECK(one.owner.credit_announced == 1);
  }
}

TEST_CASE("a stream that the peer opens with little credit is granted more at once") {
  OneReader one;
  CHECK(one.reader.credit() == nullptr);
  one.reader.on_opened(100, 0);
  CHECK(one.owner.credit_announced == 1);
  CHECK(one.reader.credit()->announced_limit() > 100);
}

TEST_CASE("data without credit, and behind the end, is the peer's error") {
  OneReader one;
  SECTION("without credit") {}
  SECTION("behind the end") {
    one.reader.open(0);
    one.reader.finish(ReadState::ended);
  }
  CHECK(one.reader.on_data(as_bytes("x")).error() == LinkError::malformed_record);
}

TEST_CASE("a block is restored, at once or when the codec has what it lacked") {
  ToyCodec here, there;
  OneReader one(&there);
  StreamBlocks sender(1_stream, &here);
  const auto wire = sender.encode({}, as_bytes("in a block"));
  REQUIRE(wire);
  one.reader.open(0);
  SECTION("at once") {
    REQUIRE(one.receive(wire->bytes()));
    CHECK(one.last_block == StreamReader::Block::restored);
    CHECK(one.read() == "in a block");
  }
  SECTION("later, and what is behind it then too") {
    there.hold_back = true;
    REQUIRE(one.receive(wire->bytes()));
    CHECK(one.last_block == StreamReader::Block::waits);
    REQUIRE(one.receive(RecordType::data, " and behind"));
    CHECK(one.reader.waits_for_block());
    CHECK(one.read() == "");
    REQUIRE(there.on_message(as_bytes("here 1")));
    REQUIRE(there.poll_ready());
    CHECK(one.reader.try_again(one.now) == StreamReader::Block::restored);
    CHECK(one.read() == "in a block");
    REQUIRE(one.reader.read_on(one.now, one));
    CHECK(one.read() == " and behind");
  }
  SECTION("later, and lost") {
    there.hold_back = true;
    REQUIRE(one.receive(wire->bytes()));
    REQUIRE(there.on_message(as_bytes("gone 1")));
    REQUIRE(there.poll_ready());
    CHECK(one.reader.try_again(one.now) == StreamReader::Block::undecodable);
    CHECK(one.read() == "");
  }
  SECTION("never") {
    there.spoil = true;
    REQUIRE(one.receive(wire->bytes()));
    CHECK(one.last_block == StreamReader::Block::undecodable);
    CHECK(one.read() == "");
    CHECK(one.times_told(EventKind::readable) == 0);
  }
  CHECK(here.broken + there.broken == "");
}

TEST_CASE("what is beyond the work of a turn asks for another one") {
  OneReader one;
  one.reader.open(0);
  one.pauses = true;
  REQUIRE(one.receive(RecordType::data, "later"));
  CHECK(one.owner.read_later == 1);
  CHECK(one.read() == "");
  one.pauses = false;
  REQUIRE(one.reader.read_on(one.now, one));
  CHECK(one.owner.read_later == 1);
  CHECK(one.read() == "later");
}

TEST_CASE("a stream that is no longer read acknowledges and stores nothing, and has given its credit back") {
  OneReader one;
  one.reader.open(0);
  REQUIRE(one.receive(RecordType::data, "unread"));
  SECTION("given up") {
    one.reader.discard();
    CHECK(one.reader.is_open());
  }
  SECTION("reset") {
    one.reader.reset();
    CHECK(one.reader.state() == ReadState::reset);
  }
  CHECK(one.reader.discards());
  CHECK(one.reader.credit() == nullptr);
  CHECK(one.pool.granted_bytes() == 0);
  CHECK(one.pool.unread_bytes() == 0);
  REQUIRE(one.receive(RecordType::data, "late"));
  CHECK(one.read() == "");
  CHECK(one.reader.wire_received() == StreamOffset(one.sent));
  REQUIRE(one.reader.take(StreamOffset(one.sent + 100), Buffer(50), one.now, one));
  CHECK(one.reader.wire_seen() == StreamOffset(one.sent + 150));
}
