// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/due_frames.h"

#include <catch2/catch.hpp>
#include <map>

#include "proxy/link/frame_assembler.h"
#include "table_of_streams.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::testing;

namespace {

struct Due : TableOfStreams {
  struct Reader final : RecordSink {
    Result<void> on_data(Bytes) override { return {}; }
    Result<void> on_record(RecordType, Bytes) override { return {}; }
  } reader;
  ControlStream control{context, reader};
  OpenCredit open_credit{pool};
  Liveness liveness;
  DueFrames due{context, streams, control, open_credit, liveness};

  // What one call writes: how often each stream is acknowledged, and up to where.
  std::multimap<StreamId, std::uint64_t> acks_of_one_write() {
    Buffer out;
    due.write(out);
    CHECK(out.size() < 32 * 1024);
    std::multimap<StreamId, std::uint64_t> acks;
    FrameAssembler assembler;
    auto take = [&](const auto& frame) -> Result<void> {
      if constexpr (std::is_same_v<std::decay_t<decltype(frame)>, Frame>)
        if (const auto* ack = std::get_if<AckFrame>(&frame))
          for (const auto& entry : ack->entries) acks.emplace(entry.stream, entry.offset.number());
      return {};
    };
    REQUIRE(assembler.feed(out, take));
    return acks;
  }
};

}  // namespace

TEST_CASE("an acknowledgement is written once, however often it becomes due") {
  Due due;
  due.add(1_stream);
  due.due.ack(due.streams.find(1_stream)->entry());
  due.due.ack(due.streams.find(1_stream)->entry());
  CHECK(due.acks_of_one_write() == std::multimap<StreamId, std::uint64_t>{{1_stream, 0}});
  CHECK_FALSE(due.due.any());
  CHECK(due.acks_of_one_write().empty());
  // It becomes due again after that; a stream that is gone says nothing.
  due.due.ack(due.streams.find(1_stream)->entry());
  due.streams.erase(1_stream);
  CHECK(due.acks_of_one_write().empty());
}

TEST_CASE("acknowledgements of a hundred thousand streams are written some kilobytes at a time") {
  Due due;
  constexpr std::uint64_t kMany = 100'000;
  for (std::uint64_t n = 1; n <= kMany; ++n) due.due.ack_again(StreamId(n), StreamOffset(n));
  std::size_t written = 0, calls = 0;
  while (due.due.any()) {
    const auto acks = due.acks_of_one_write();
    REQUIRE_FALSE(acks.empty());
    for (const auto& [id, offset] : acks) REQUIRE(id == StreamId(offset));
    written += acks.size();
    ++calls;
    // What is left does not wait for its time again.
    if (written < kMany) REQUIRE(due.due.ack_timer().is_due(due.context.now));
  }
  CHECK(written == kMany);
  CHECK(calls > 100);
}

TEST_CASE("the last acknowledgements of streams that are gone are repeated, of the newest thousand") {
  Due due;
  CHECK_FALSE(due.due.repeat_last_acks());
  for (StreamId id{1}; id <= 3000_stream; ++id) due.due.remember_last_ack(id, 5_offset);
  CHECK(due.due.repeat_last_acks());
  std::multimap<StreamId, std::uint64_t> all;
  while (due.due.any()) all.merge(due.acks_of_one_write());
  CHECK(all.size() == 1024);
  CHECK(all.contains(3000_stream));
  CHECK_FALSE(all.contains(1976_stream));
}
