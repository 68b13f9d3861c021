// SPDX-License-Identifier: Apache-2.0
// How many flows there may be: of one client, of one peer, and altogether. Every flow's record is added to
// the table and removed from it here, so that the counts are right.
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
  // Clients whose new flows bypass transparent mode, whenever that changes.
  using OnCrowded = std::function<void(const Crowded&)>;
  // `config` and `table` outlive this object.
  Admission(const config::Config& config, FlowTable& table, OnCrowded on_crowded);

  FlowRecord& enter(FlowRecord record);
  void remove(FlowId id, FlowTable::End end);
  // The configuration's [limits] have changed.
  void limits_changed();

  // Why one more flow of this site's client may not use a link. None: it may.
  std::optional<Reason> limit_reached(const boost::asio::ip::address& client) const;
  // Whether one more flow of this site's client is relayed, be it outside the link.
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
