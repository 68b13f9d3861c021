// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_input.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "codecs/bytes.h"
#include "table_of_streams.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace std::chrono_literals;

namespace {

Buffer wire_of(RecordType type, std::string_view body) {
  Buffer wire;
  write_record_head(type, body.size(), wire);
  append(wire, as_bytes(body));
  return wire;
}

struct OneInput : RecordSink {
  Result<void> on_data(Bytes plain) override {
    if (input.discards()) return {};
    read += as_text(plain);
    return {};
  }
  Result<void> on_record(RecordType, Bytes body) override {
    if (input.discards()) return {};
    read += '[';
    read += as_text(body);
    read += ']';
    if (on_each) on_each(body);
    return {};
  }
  bool waits() const override { return input.waits_for_block() || pauses; }

  Result<void> take(std::uint64_t offset, Bytes wire) {
    const auto taken = input.take(StreamOffset(offset), wire, now, *this);
    if (!taken) return taken.error();
    stall = *taken;
    return {};
  }
  std::uint64_t waiting() const { return streams.context.waiting_cost; }

  longhaul::link::testing::TableOfStreams streams;
  StreamInput input{streams.context};
  TimePoint now{1h};
  std::string read;
  std::optional<Duration> stall;
  std::function<void(Bytes)> on_each;
  bool pauses = false;
};

}  // namespace

TEST_CASE("records are read in order, and the time that bytes waited for a gap is reported") {
  OneInput one;
  const Buffer first = wire_of(RecordType::data, "first"), second = wire_of(RecordType::module, "second");
  REQUIRE(one.take(first.size(), second));
  CHECK_FALSE(one.stall);
  CHECK(one.read == "");
  CHECK(one.waiting() > second.size());
  CHECK(one.input.end() == StreamOffset(first.size() + second.size()));
  one.now += 30ms;
  REQUIRE(one.take(0, first));
  REQUIRE(one.stall);
  CHECK((*one.stall == 30ms));
  CHECK(one.read == "first[second]");
  CHECK(one.waiting() == 0);
  CHECK(one.input.contiguous() == StreamOffset(first.size() + second.size()));
}

TEST_CASE("nothing behind a block that waits is read before it is decoded") {
  OneInput one;
  one.on_each = [&](Bytes body) {
    if (as_text(body) == "wait") one.input.wait_for(body);
  };
  Buffer wire = wire_of(RecordType::block, "wait");
  append(wire, wire_of(RecordType::data, "behind"));
  const std::size_t size = wire.size();
  REQUIRE(one.take(0, wire));
  REQUIRE(one.take(size, wire_of(RecordType::end, "")));
  CHECK(one.read == "[wait]");
  CHECK(one.input.waits_for_block());
  CHECK_FALSE(one.input.has_unread());
  CHECK(as_text(one.input.waiting_block().bytes()) == "wait");
  CHECK(one.waiting() > 4);
  REQUIRE(one.input.read_on(one));
  CHECK(one.read == "[wait]");
  one.input.on_decoded();
  CHECK(one.input.has_unread());
  REQUIRE(one.input.read_on(one));
  CHECK(one.read == "[wait]behind[]");
  CHECK_FALSE(one.input.has_unread());
  CHECK(one.waiting() == 0);
}

TEST_CASE("records beyond the work of a turn are read in another one") {
  OneInput one;
  one.on_each = [&](Bytes) { one.pauses = true; };
  Buffer wire;
  for (const char* body : {"a", "b", "c"}) append(wire, wire_of(RecordType::module, body));
  REQUIRE(one.take(0, wire));
  CHECK(one.read == "[a]");
  CHECK(one.input.has_unread());
  CHECK(one.input.contiguous() == StreamOffset(wire.size()));
  one.pauses = false;
  REQUIRE(one.input.read_on(one));
  CHECK(one.read == "[a][b]");
  CHECK(one.input.has_unread());
  one.pauses = false;
  REQUIRE(one.input.read_on(one));
  CHECK(one.read == "[a][b][c]");
  CHECK_FALSE(one.input.has_unread());
}

TEST_CASE("a stream that is no longer read receives bytes, and stores none") {
  OneInput one;
  one.on_each = [&](Bytes) { one.input.discard(); };
  Buffer wire = wire_of(RecordType::module, "the last");
  append(wire, wire_of(RecordType::module, "too late"));
  REQUIRE(one.take(0, wire));
  CHECK(one.read == "[the last]");
  CHECK(one.input.discards());
  CHECK(one.input.contiguous() == StreamOffset(wire.size()));
  REQUIRE(one.take(wire.size() + 5000, Buffer(1000)));
  CHECK(one.waiting() < 500);
  CHECK(one.input.end() == StreamOffset(wire.size() + 6000));
}

TEST_CASE("bytes that wait are bounded for all streams together") {
  OneInput one;
  {
    StreamInput other(one.streams.context);
    REQUIRE(other.take(10_offset, Buffer(1 << 19), one.now, one).has_value());
    CHECK_FALSE(one.take(10, Buffer((1 << 19) + 1)));
  }
  CHECK(one.waiting() < (1 << 20));
}

TEST_CASE("a record that is not valid is an error, at once or when it is read later") {
  OneInput one;
  const Buffer unknown(3, std::byte{99});
  SECTION("at once") { CHECK_FALSE(one.take(0, unknown)); }
  SECTION("later") {
    one.on_each = [&](Bytes) { one.pauses = true; };
    Buffer wire = wire_of(RecordType::module, "a");
    append(wire, unknown);
    REQUIRE(one.take(0, wire));
    one.pauses = false;
    CHECK_FALSE(one.input.read_on(one));
  }
}
