// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/admission.h"

#include <utility>

namespace longhaul::flows {
namespace asio = boost::asio;
namespace {

// All clients of this site are one sharer, with an empty name.
std::string sharer_of(const FlowRecord& record) { return record.far_side ? record.peer : std::string(); }

}  // namespace

Admission::Admission(const config::Config& config, FlowTable& table, OnCrowded on_crowded)
    : config_(config), table_(table), on_crowded_(std::move(on_crowded)), sources_(config.limits) {}

FlowRecord& Admission::enter(FlowRecord record) {
  FlowRecord& entered = table_.add(std::move(record));
  shares_.add(sharer_of(entered));
  tell_crowded(!entered.far_side && sources_.add(entered.client.address()));
  return entered;
}

void Admission::remove(FlowId id, FlowTable::End end) {
  const FlowRecord& record = table_.live().at(id);
  const bool changed = !record.far_side && sources_.remove(record.client.address());
  shares_.remove(sharer_of(record));
  table_.remove(id, end);
  tell_crowded(changed);
}

void Admission::limits_changed() {
  sources_.limits_changed();
  tell_crowded(true);
}

std::optional<Reason> Admission::limit_reached(const asio::ip::address& client) const {
  if (table_.live().size() >= config_.limits.flows) return reasons::flow_limit;
  if (sources_.at_limit(client)) return reasons::source_limit;
  return std::nullopt;
}

bool Admission::has_room(const asio::ip::address& client) const {
  return table_.live().size() < 2 * std::size_t{config_.limits.flows} && !sources_.at_limit(client, 2);
}

bool Admission::has_room_for_peer(const std::string& peer) const {
  return shares_.has_room(peer, config_.limits.flows, sharers());
}

// Counts the peers, and this site's clients if the configuration admits any.
std::size_t Admission::sharers() const {
  const bool has_clients = config_.intercept.mode != config::Intercept::Mode::off ||
                           !config_.forwards.empty() || config_.socks.listen.has_value();
  return config_.peers.size() + (has_clients ? 1 : 0);
}

void Admission::tell_crowded(bool sources_changed) {
  const std::size_t live = table_.live().size(), most = config_.limits.flows;
  const bool is_full = live >= (is_full_ ? most - most / 8 : most);
  const bool changed = is_full != std::exchange(is_full_, is_full);
  if (changed || sources_changed) on_crowded_({.everyone = is_full, .sources = sources_.crowded()});
}

}  // namespace longhaul::flows
