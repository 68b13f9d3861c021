// SPDX-License-Identifier: Apache-2.0
// Limits the number of flows per client, per peer and in total. Every flow's record is added to the table and
// removed from it here, so that the counts are right.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <optional>
#include <string>

#include "proxy/config/config.h"
#include "proxy/flows/flow_table.h"
#include "proxy/flows/peer_shares.h"
#include "proxy/flows/source_limits.h"

namespace longhaul::flows {

class Admission {
 public:
  // Called with the clients whose new flows bypass transparent mode, whenever that set changes.
  using OnCrowded = std::function<void(const Crowded&)>;
  // `config` and `table` outlive this object.
  Admission(const config::Config& config, FlowTable& table, OnCrowded on_crowded);

  FlowRecord& enter(FlowRecord record);
  void remove(FlowId id, FlowTable::End end);
  // The configuration's [limits] have changed.
  void limits_changed();

  // Why one more flow of this site's client may not use a link; nullopt if it may.
  std::optional<Reason> limit_reached(const boost::asio::ip::address& client) const;
  // Whether one more flow of this site's client may be relayed, over the link or outside it.
  bool has_room(const boost::asio::ip::address& client) const;
  // Whether one more flow of that peer's clients may begin.
  bool has_room_for_peer(const std::string& peer) const;

 private:
  std::size_t sharers() const;
  void tell_crowded(bool sources_changed);

  const config::Config& config_;
  FlowTable& table_;
  OnCrowded on_crowded_;
  SourceLimits sources_;  // of this site's clients
  PeerShares shares_;
  bool is_full_ = false;  // as last reported by `Crowded::everyone`
};

}  // namespace longhaul::flows
