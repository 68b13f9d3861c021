// SPDX-License-Identifier: Apache-2.0
// All flows of a daemon, and what happens to them: what its listeners, its links and its operator call. Each
// part has a class of its own, which this one puts together.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "proxy/flows/admission.h"
#include "proxy/flows/bypassing_flows.h"
#include "proxy/flows/client_losses.h"
#include "proxy/flows/doubt.h"
#include "proxy/flows/far_flows.h"
#include "proxy/flows/linked_flows.h"
#include "proxy/flows/lost_links.h"
#include "proxy/flows/near_flows.h"
#include "proxy/flows/paths.h"
#include "proxy/flows/sweeps.h"
#include "proxy/flows/unreachable_servers.h"

namespace longhaul::flows {

class Flows {
 public:
  // All references outlive this object.
  Flows(boost::asio::io_context& io, const config::Config& config, config::Features& features,
        FlowTable& table, Dialer& dialer, std::vector<std::unique_ptr<link::PeerLink>>& links,
        modules::List modules);
  ~Flows();

  // Of a client of this site. Never fails, never blocks.
  void start(Accepted accepted) { near_.start(std::move(accepted)); }
  // Of a client of the peer's site.
  void on_opened(link::PeerLink& link, link::Stream& stream) { far_.on_opened(link, stream); }
  // The link cannot be used now: our clients' flows that the server cannot have received a byte of are
  // decided again, as if they began now.
  void on_link_lost(const link::PeerLink& link) { lost_links_.on_link_lost(link); }
  // Whether that is still under way.
  bool decides_anew(const link::PeerLink& link) const { return lost_links_.decides_anew(link); }
  // The peer's process has ended: its unanswered requests will not be answered.
  void on_peer_gone(const link::PeerLink& link) { lost_links_.on_peer_gone(link); }
  // Clients of peers that may have ended, to servers here: promises to such a client may be lost, and it may
  // return bypassing its peer before that is known. Its bypassing flows wait until that is settled. At most
  // `most` of them, without ports.
  std::vector<modules::Ends> in_doubt(std::size_t most) const { return doubt_.all(most); }
  // Features in force changed, on all links or on this one: running flows of this site's clients change soon,
  // at the next block.
  void apply_features(const link::PeerLink* link = nullptr);
  // Modules of our clients whose state was changed by other flows act on it, soon.
  void run_modules();
  const Sweeps::Counters& sweeps() const { return sweeps_.counters(); }
  // Connections to servers that are made ahead of the peers' clients.
  Spares& spares() { return far_.spares(); }
  const Spares& spares() const { return far_.spares(); }
  // In force at once: bypassing flows that are no longer allowed are reset.
  void set_closed(Closed closed);
  // The configuration's [limits] have changed.
  void limits_changed();
  // Every flow is reset; for the end of the daemon.
  void cut_all();

  Decision decide(const boost::asio::ip::address& client, const Destination& destination) const {
    return paths_.decide(client, destination);
  }
  // The same for a flow that the peer would open for its client: whether and why not it would be dialled
  // here.
  Reason decide_for_peer(const link::PeerLink& link, const boost::asio::ip::address& client,
                         const Destination& destination) {
    return far_.decide(link, client, destination);
  }
  // Bypassing the link, as far as fail = closed is concerned.
  bool may_leave(const boost::asio::ip::address& client, const Destination& destination) const {
    return paths_.may_leave(client, destination);
  }
  // For explicit listeners, whose clients cannot bypass this proxy: whether one more flow is relayed outside
  // the link.
  bool has_room(const boost::asio::ip::address& client) const { return admission_.has_room(client); }

  // Clients whose new flows bypass transparent mode, whenever that changes.
  std::function<void(const Crowded&)> on_crowded;
  // After on_peer_gone(): all of that peer's clients are settled.
  std::function<void()> on_doubt_settled;
  // A server refused, or is unreachable: the next connections to it bypass transparent mode.
  std::function<void(const boost::asio::ip::tcp::endpoint&)> on_server_refused;

 private:
  void apply_features_to(LinkedFlow& flow);
  void remember_unreachable(const FlowRecord& record);
  void tell_refused(const FlowRecord& record);

  modules::List modules_;
  Admission admission_;
  ClientLosses losses_;
  UnreachableServers unreachable_;
  Paths paths_;
  Doubt doubt_;
  LinkedFlows linked_;
  Sweeps sweeps_;
  BypassingFlows bypassing_;
  NearFlows near_;
  FarFlows far_;
  LostLinks lost_links_;
};

}  // namespace longhaul::flows
