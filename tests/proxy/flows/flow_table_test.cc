// SPDX-License-Identifier: Apache-2.0
// Tests the flow table: ids, sums and counts stay right however flows come, change and go.
#include "proxy/flows/flow_table.h"

#include <catch2/catch.hpp>
#include <random>

using namespace longhaul::flows;

namespace {

FlowRecord with(Reason reason) {
  FlowRecord record;
  record.reason = reason;
  return record;
}

std::uint64_t sum(const CountByReason& counts) {
  std::uint64_t total = 0;
  for (const auto& [reason, times] : counts) total += times;
  return total;
}

}  // namespace

TEST_CASE("flow ids count up from one and are never used twice") {
  FlowTable table;
  CHECK(table.add({}).id == 1);
  CHECK(table.add({}).id == 2);
  table.remove(2, FlowTable::End::closed);
  CHECK(table.add({}).id == 3);
}

TEST_CASE("a flow record stays at its address while others are added and removed") {
  FlowTable table;
  FlowRecord& first = table.add({});
  for (int i = 0; i < 1000; ++i) table.add({});
  for (FlowId id = 2; id <= 1001; ++id) table.remove(id, FlowTable::End::closed);
  first.bytes.lan_in = 7;
  CHECK(table.live().at(1).bytes.lan_in == 7);
  CHECK(&table.live().at(1) == &first);
}

TEST_CASE("a flow's reason is counted at its start and when it changes, not when it is given again") {
  FlowTable table;
  FlowRecord& record = table.add(with(reasons::optimised));
  table.give_reason(record, reasons::optimised);
  CHECK(count(table.totals().by_reason, reasons::optimised) == 1);
  table.give_reason(record, reasons::source_fallback);
  CHECK(record.reason == reasons::source_fallback);
  CHECK(count(table.totals().by_reason, reasons::source_fallback) == 1);
  CHECK(count(table.totals().live_by_reason, reasons::optimised) == 0);
  CHECK(count(table.totals().live_by_reason, reasons::source_fallback) == 1);
  table.remove(record.id, FlowTable::End::reset);
  CHECK(count(table.totals().live_by_reason, reasons::source_fallback) == 0);
  CHECK(count(table.totals().by_reason, reasons::source_fallback) == 1);
  CHECK(table.totals().reset == 1);
}

TEST_CASE("a flow that leaves the link also leaves its module, and stays counted for it") {
  FlowTable table;
  FlowRecord& record = table.add(with(reasons::optimised));
  record.peer = "far";
  record.module = std::make_unique<ModuleRecord>(ModuleRecord{.name = "smb"});
  table.leave_link(record, reasons::link_down);
  CHECK(record.reason == reasons::link_down);
  CHECK(record.peer.empty());
  CHECK_FALSE(record.module);
  const auto live = table.by_module_so_far();
  CHECK(live.at({"far", "smb"}).flows == 1);
  CHECK(live.at({"far", "smb"}).live == 0);
  table.remove(record.id, FlowTable::End::closed);
  CHECK(table.by_module_so_far().at({"far", "smb"}).flows == 1);
}

TEST_CASE("the most recently ended flows can be queried, up to a small number") {
  FlowTable table;
  for (std::size_t i = 0; i < FlowTable::kEndedKept + 3; ++i) {
    FlowRecord& record = table.add(with(reasons::link_down));
    record.bytes.lan_in = record.id;
    table.remove(record.id, FlowTable::End::reset);
  }
  REQUIRE(table.ended().size() == FlowTable::kEndedKept);
  CHECK(table.ended().front().record.id == 4);
  CHECK(table.ended().back().record.bytes.lan_in == FlowTable::kEndedKept + 3);
  CHECK(table.ended().back().end == FlowTable::End::reset);
}

TEST_CASE("the sums of the flow table agree with a plain recount after random operations") {
  const auto seed = GENERATE(1u, 2u, 3u);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::vector<Reason> reasons = all_reasons();
  FlowTable table;
  FlowBytes expected;
  std::uint64_t resets = 0;
  for (int step = 0; step < 3000; ++step) {
    if (table.live().empty() || random() % 3 == 0) {
      FlowRecord& record = table.add(with(reasons[random() % reasons.size()]));
      const FlowBytes bytes{random() % 100, random() % 100, random() % 100, random() % 100};
      record.bytes = bytes;
      expected += bytes;
    } else {
      auto victim = table.live().begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % table.live().size()));
      const bool reset = random() % 2 == 0;
      resets += reset;
      table.remove(victim->first, reset ? FlowTable::End::reset : FlowTable::End::closed);
    }
    CHECK(table.bytes_so_far() == expected);
  }
  const auto& totals = table.totals();
  CHECK(totals.reset == resets);
  CHECK(totals.started - totals.ended == table.live().size());
  CHECK(sum(totals.live_by_reason) == table.live().size());
  CHECK(sum(totals.by_reason) == totals.started);
}

TEST_CASE("bytes and blocks are summed by port for the first ports seen") {
  FlowTable table;
  const auto start = [&](std::uint16_t port) -> FlowRecord& {
    FlowRecord record;
    record.destination.port = port;
    return table.add(std::move(record));
  };
  FlowRecord& first = start(445);
  first.bytes.lan_in = 100;
  first.blocks.out = {.blocks = 1, .plain = 100, .deduped = 20, .encoded = 10};
  table.remove(first.id, FlowTable::End::closed);
  FlowRecord& second = start(445);
  second.bytes.lan_in = 7;
  second.blocks.out = {.blocks = 1, .plain = 7, .deduped = 7, .encoded = 7};
  auto totals = table.by_port_so_far();
  CHECK(totals.at(445).started == 2);
  CHECK(totals.at(445).bytes.lan_in == 107);
  CHECK(totals.at(445).blocks.out.plain == 107);
  CHECK(totals.at(445).blocks.out.encoded == 17);
  for (unsigned port = 1000; port < 3000; ++port) start(static_cast<std::uint16_t>(port)).bytes.lan_out = 1;
  totals = table.by_port_so_far();
  CHECK(totals.size() <= FlowTable::kPortsKept + 1);
  std::uint64_t started = 0, bytes = 0;
  for (const auto& [port, sum] : totals) {
    started += sum.started;
    bytes += sum.bytes.lan_out;
  }
  CHECK(started == 2002);
  CHECK(bytes == 2000);
  CHECK(totals.at(0).started > 1800);
}
