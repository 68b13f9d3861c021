// SPDX-License-Identifier: Apache-2.0
#include "proxy/export/flow_exporter.h"

#include <array>
#include <catch2/catch.hpp>

#include "proxy/flows/tuple.h"

namespace longhaul::exporting {
namespace {

namespace asio = boost::asio;
using asio::ip::udp;
using namespace std::chrono_literals;

flows::FlowId add_flow(flows::FlowTable& table, std::uint64_t lan_in = 100) {
  const auto tuple = flows::parse_tuple("10.0.0.1:5000-10.0.2.2:445").value();
  flows::FlowRecord record;
  record.client = tuple.client;
  record.destination = tuple.destination;
  record.started = std::chrono::steady_clock::now();
  record.bytes.lan_in = lan_in;
  return table.add(std::move(record)).id;
}

void end_flows(flows::FlowTable& table, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) table.remove(add_flow(table), flows::FlowTable::End::closed);
}

template <class Condition>
bool run_until(asio::io_context& io, Condition met) {
  const auto latest = std::chrono::steady_clock::now() + 30s;
  while (!met() && std::chrono::steady_clock::now() < latest) io.run_one_for(100ms);
  return met();
}

}  // namespace

TEST_CASE("the flow exporter sends templates first, and then two records for each flow") {
  asio::io_context io;
  net::NameResolver resolver;
  flows::FlowTable table;
  udp::socket collector(io, udp::endpoint(asio::ip::address_v4::loopback(), 0));
  collector.non_blocking(true);
  FlowExporter exporter(io, {.to = {"127.0.0.1", collector.local_endpoint().port()}}, table, resolver);
  table.on_removed = [&](const flows::FlowRecord& record) { exporter.flow_ended(record); };
  exporter.begin();
  end_flows(table, 2);
  add_flow(table, 7);  // alive at the end
  REQUIRE(run_until(io, [&] { return exporter.counters().records == 4; }));
  table.on_removed = nullptr;
  exporter.stop();
  CHECK(exporter.counters().records == 6);
  CHECK(exporter.counters().dropped_records == 0);

  std::vector<std::size_t> sizes;
  std::vector<int> first_sets;
  std::array<std::uint8_t, 2048> message{};
  boost::system::error_code error;
  for (;;) {
    const std::size_t size = collector.receive(asio::buffer(message), 0, error);
    if (error) break;
    sizes.push_back(size);
    first_sets.push_back(message[16] * 256 + message[17]);
  }
  CHECK(first_sets == std::vector<int>{2, 256, 256});
  CHECK(sizes.size() == exporter.counters().messages);
}

TEST_CASE("the flow exporter drops and counts what does not fit into its queue") {
  asio::io_context io;
  net::NameResolver resolver;
  flows::FlowTable table;
  // Not begun: there is no collector to send to.
  FlowExporter exporter(io, {.to = {"127.0.0.1", 4739}}, table, resolver);
  table.on_removed = [&](const flows::FlowRecord& record) { exporter.flow_ended(record); };
  constexpr std::size_t kFlows = 20'000, kRecordsPerMessage = 14, kQueued = 1024;
  end_flows(table, kFlows);
  const std::uint64_t dropped = exporter.counters().dropped_records;
  CHECK(dropped > 0);
  CHECK(2 * kFlows - dropped >= kQueued * kRecordsPerMessage);
  CHECK(2 * kFlows - dropped <= (kQueued + 1) * (kMostIpfixBytes / 60));
  CHECK(exporter.counters().failures > 0);
}

}  // namespace longhaul::exporting
