// SPDX-License-Identifier: Apache-2.0
// Keeps the records of live flows and the sums of all flows.
#include "proxy/flows/flow_table.h"

#include <cassert>
#include <utility>

namespace longhaul::flows {
namespace {

PortTotals& of_port(TotalsByPort& totals, std::uint16_t port) {
  const bool room = totals.size() < FlowTable::kPortsKept;
  return totals[room || totals.contains(port) ? port : std::uint16_t{0}];
}

ModuleTotals& add_to(TotalsByModule& totals, const FlowRecord& record) {
  ModuleTotals& module = totals[{record.peer, record.module->name}];
  ++module.flows;
  module.counters += record.module->counters;
  return module;
}

}  // namespace

FlowBytes& FlowBytes::operator+=(const FlowBytes& other) {
  lan_in += other.lan_in;
  lan_out += other.lan_out;
  wan_in += other.wan_in;
  wan_out += other.wan_out;
  return *this;
}

FlowRecord& FlowTable::add(FlowRecord record) {
  const FlowId id = next_id_++;
  record.id = id;
  ++totals_.started;
  ++of_port(by_port_, record.destination.port).started;
  ++totals_.by_reason[record.reason];
  ++totals_.live_by_reason[record.reason];
  return live_.emplace_hint(live_.end(), id, std::move(record))->second;
}

void FlowTable::give_reason(FlowRecord& record, Reason reason) {
  assert(live_.contains(record.id));
  if (record.reason == reason) return;
  --totals_.live_by_reason[record.reason];
  record.reason = reason;
  ++totals_.by_reason[reason];
  ++totals_.live_by_reason[reason];
}

void FlowTable::leave_link(FlowRecord& record, Reason reason) {
  give_reason(record, reason);
  if (record.module) add_to(by_module_, record);
  record.module.reset();
  record.peer.clear();
}

void FlowTable::remove(FlowId id, End end) {
  const auto found = live_.find(id);
  assert(found != live_.end());
  if (on_removed) on_removed(found->second);
  ++totals_.ended;
  if (end == End::reset) {
    ++totals_.reset;
    for (std::size_t i = 0; i < kResetTexts.size(); ++i)
      if (kResetTexts[i].by == found->second.reset_by) ++totals_.reset_by[i];
  }
  totals_.bytes += found->second.bytes;
  PortTotals& port = of_port(by_port_, found->second.destination.port);
  port.bytes += found->second.bytes;
  port.blocks += found->second.blocks;
  if (found->second.module) add_to(by_module_, found->second);
  --totals_.live_by_reason[found->second.reason];
  if (ended_.size() == kEndedKept) ended_.pop_front();
  ended_.push_back({std::move(found->second), end});
  live_.erase(found);
}

TotalsByPort FlowTable::by_port_so_far() const {
  TotalsByPort sums = by_port_;
  for (const auto& [id, record] : live_) {
    PortTotals& port = of_port(sums, record.destination.port);
    port.bytes += record.bytes;
    port.blocks += record.blocks;
  }
  return sums;
}

TotalsByModule FlowTable::by_module_so_far() const {
  TotalsByModule sums = by_module_;
  for (const auto& [id, record] : live_)
    if (record.module) ++add_to(sums, record).live;
  return sums;
}

FlowBytes FlowTable::bytes_so_far() const {
  FlowBytes sum = totals_.bytes;
  for (const auto& [id, record] : live_) sum += record.bytes;
  return sum;
}

}  // namespace longhaul::flows
