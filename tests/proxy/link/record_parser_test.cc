// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/record_parser.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "codecs/bytes.h"

using namespace longhaul;
using namespace longhaul::link;

namespace {

struct SeenRecord {
  RecordType type;
  std::string body;
  bool operator==(const SeenRecord&) const = default;
};

class CollectedRecords final : public RecordSink {
 public:
  Result<void> on_data(Bytes plain) override {
    if (plain.empty()) empty_data = true;
    data += as_text(plain);
    // Pieces of data count as one, however they were split.
    if (seen.empty() || seen.back().type != RecordType::data) seen.push_back({RecordType::data, ""});
    seen.back().body += as_text(plain);
    return {};
  }
  Result<void> on_record(RecordType type, Bytes body) override {
    seen.push_back({type, std::string(as_text(body))});
    return {};
  }
  std::vector<SeenRecord> seen;
  std::string data;
  bool empty_data = false;
};

Buffer wire_record(RecordType type, Bytes body = {}) {
  Buffer bytes;
  write_record_head(type, body.size(), bytes);
  append(bytes, body);
  return bytes;
}

}  // namespace

TEST_CASE("records are the same however their bytes are split") {
  Buffer stream, large(5000, std::byte{'x'});
  append(stream, wire_record(RecordType::open, Buffer(300, std::byte{1})));
  append(stream, wire_record(RecordType::data, large));
  append(stream, wire_record(RecordType::data));
  append(stream, wire_record(RecordType::data, as_bytes("y")));
  append(stream, wire_record(RecordType::module));
  append(stream, wire_record(RecordType::module, large));
  append(stream, wire_record(RecordType::block, large));
  append(stream, wire_record(RecordType::end));
  CollectedRecords whole;
  REQUIRE(RecordParser().feed(stream, whole).has_value());
  REQUIRE(whole.seen.size() == 6);
  CHECK(whole.seen[1].body.size() == 5001);
  CHECK(whole.seen.back() == SeenRecord{RecordType::end, ""});
  CHECK_FALSE(whole.empty_data);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    std::size_t longest = seed == 0 ? 1 : 1 + random() % 3000;
    RecordParser parser;
    CollectedRecords split;
    for (Bytes rest = stream; !rest.empty();) {
      std::size_t size = std::min<std::size_t>(rest.size(), 1 + random() % longest);
      // From memory of exactly that size, so that a read past it is seen by ASan.
      Buffer piece(rest.begin(), rest.begin() + static_cast<long>(size));
      REQUIRE(parser.feed(piece, split).has_value());
      rest = rest.subspan(size);
    }
    INFO("seed " << seed);
    REQUIRE(split.seen == whole.seen);
  }
}

TEST_CASE("an impossible record is an error as soon as its bytes show it") {
  auto feed = [](const Buffer& bytes) {
    RecordParser parser;
    CollectedRecords sink;
    return parser.feed(bytes, sink).has_value();
  };
  Buffer head;
  SECTION("an unknown type") {
    write_record_head(static_cast<RecordType>(10), 0, head);
    CHECK_FALSE(feed(head));
  }
  SECTION("a body larger than any record") {
    write_record_head(RecordType::module, kMaxRecordBody, head);
    CHECK(feed(head));
    head.clear();
    write_record_head(RecordType::module, kMaxRecordBody + 1, head);
    CHECK_FALSE(feed(head));
  }
  SECTION("data may be as long as credit allows") {
    write_record_head(RecordType::data, kMaxVarint, head);
    CHECK(feed(head));
  }
  SECTION("an end with a body") {
    write_record_head(RecordType::end, 1, head);
    CHECK_FALSE(feed(head));
  }
  SECTION("anything behind the end") {
    head = wire_record(RecordType::abort);
    CHECK(feed(head));
    head.push_back(std::byte{2});
    CHECK_FALSE(feed(head));
  }
}

TEST_CASE("an error of the sink is returned") {
  class Failing final : public RecordSink {
    Result<void> on_data(Bytes) override { return LinkError::credit_exceeded; }
    Result<void> on_record(RecordType, Bytes) override { return LinkError::malformed_record; }
  } sink;
  CHECK(RecordParser().feed(wire_record(RecordType::data, as_bytes("x")), sink).error() ==
        LinkError::credit_exceeded);
  CHECK(RecordParser().feed(wire_record(RecordType::end), sink).error() == LinkError::malformed_record);
}

TEST_CASE("the memory of a long record is reserved once, that of a short one grows with what arrives") {
  struct Sink final : RecordSink {
    Result<void> on_data(Bytes) override { return {}; }
    Result<void> on_record(RecordType, Bytes body) override {
      size = body.size();
      return {};
    }
    std::size_t size = 0;
  } sink;
  const bool is_long = GENERATE(true, false);
  const std::size_t size = is_long ? 60'000 : 4000;
  Buffer wire;
  write_record_head(is_long ? RecordType::block : RecordType::open, size, wire);
  wire.resize(wire.size() + size);
  RecordParser parser;
  std::set<std::size_t> held;
  for (Bytes rest = wire; !rest.empty();) {
    const Bytes piece = rest.first(std::min<std::size_t>(500, rest.size()));
    REQUIRE(parser.feed(piece, sink).has_value());
    rest = rest.subspan(piece.size());
    if (!rest.empty()) held.insert(parser.held_bytes());
  }
  CHECK(sink.size == size);
  CHECK(parser.held_bytes() == 0);
  if (is_long) {
    CHECK(held == std::set<std::size_t>{size});
  } else {
    CHECK(held.size() > 2);
    CHECK(*held.begin() < 1000);
  }
}
