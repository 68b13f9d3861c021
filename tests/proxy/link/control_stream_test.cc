// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/control_stream.h"

#include <catch2/catch.hpp>

#include "table_of_streams.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::testing;

namespace {

struct ControlledRecords final : RecordSink {
  explicit ControlledRecords(const WorkBudget& of_turn) : work(of_turn) {}
  Result<void> on_data(Bytes) override { return LinkError::malformed_record; }
  Result<void> on_record(RecordType type, Bytes body) override {
    types.push_back(type);
    bytes += body.size();
    count_work(1000);
    return {};
  }
  bool waits() const override { return work.used_up(); }
  const WorkBudget& work;
  std::vector<RecordType> types;
  std::size_t bytes = 0;
};

struct ControlOnly : TableOfStreams {
  ControlledRecords records{context.work};
  ControlStream control{context, records};

  static Buffer record(std::size_t size) {
    Buffer out;
    write_record_head(RecordType::dictionary, size, out);
    out.resize(out.size() + size);
    return out;
  }
  Result<void> feed(std::uint64_t offset, Bytes payload) {
    return control.on_frame({kControlStream, StreamOffset(offset), payload});
  }
};

}  // namespace

TEST_CASE("records of the control stream arrive whole and in order, whatever pieces they come in") {
  ControlOnly at;
  Buffer all = at.record(10);
  const Buffer second = at.record(2000);
  all.insert(all.end(), second.begin(), second.end());
  // From the end, byte by byte; and some of it twice.
  for (std::size_t i = all.size(); i-- > 1;) REQUIRE(at.feed(i, Bytes(all).subspan(i, 1)));
  CHECK(at.records.types.empty());
  CHECK(at.control.received().number() == 0);
  REQUIRE(at.feed(0, Bytes(all).first(100)));
  REQUIRE(at.feed(50, Bytes(all).subspan(50)));
  CHECK(at.records.types.size() == 2);
  CHECK(at.records.bytes == 2010);
  CHECK(at.control.received().number() == all.size());
}

TEST_CASE("a peer that leaves gaps in the control stream uses bounded memory") {
  ControlOnly at;
  const Buffer piece(1000);
  Result<void> taken;
  std::uint64_t offset = 1;
  int pieces = 0;
  for (; taken && pieces < 100'000; ++pieces, offset += 2000) taken = at.feed(offset, piece);
  REQUIRE_FALSE(taken);
  CHECK(pieces < 10'000);
  // However small the pieces are.
  ControlOnly small;
  taken = {};
  offset = 1;
  for (pieces = 0; taken && pieces < 1'000'000; ++pieces, offset += 2)
    taken = small.feed(offset, Bytes(piece).first(1));
  REQUIRE_FALSE(taken);
  CHECK(taken.error() == LinkError::control_overflow);
}

TEST_CASE("records beyond a turn's work wait for the next turn") {
  ControlOnly at;
  const Buffer record = at.record(100);
  at.context.work = WorkBudget(1500);
  {
    WorkBudget::Scope turn(at.context.work);
    std::uint64_t offset = 0;
    for (int i = 0; i < 5; ++i, offset += record.size()) REQUIRE(at.feed(offset, record));
  }
  CHECK(at.records.types.size() == 2);
  CHECK(at.control.has_unread());
  at.context.work.begin_turn();
  {
    WorkBudget::Scope turn(at.context.work);
    REQUIRE(at.control.read_on());
  }
  CHECK(at.records.types.size() == 4);
  at.context.work.begin_turn();
  REQUIRE(at.control.read_on());
  CHECK(at.records.types.size() == 5);
  CHECK_FALSE(at.control.has_unread());
}

TEST_CASE("what the control stream keeps for sending counts until it is acknowledged") {
  TableOfStreams table;
  {
    ControlledRecords records(table.context.work);
    ControlStream control(table.context, records);
    const Buffer body(1000);
    control.write(RecordType::dictionary, body);
    const std::uint64_t kept = table.retained.used_bytes();
    CHECK(kept >= 1000);
    control.write(RecordType::dictionary, body);
    control.on_acknowledged(StreamOffset(kept));  // of what was never sent
    CHECK(table.retained.used_bytes() == 2 * kept);
    control.sending().on_sent(StreamRange::of({0, kept}), CarrierId{1});
    control.on_acknowledged(StreamOffset(kept));
    CHECK(table.retained.used_bytes() == kept);
    CHECK_FALSE(control.overflows());
  }
  CHECK(table.retained.used_bytes() == 0);
}
