// SPDX-License-Identifier: Apache-2.0
// All flows of a daemon, as its listeners, its links and its operator use them. Each part has a class of its
// own; this class puts them together.
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

  // Starts a flow of this site's client. Never fails, never blocks.
  void start(Accepted accepted) { near_.start(std::move(accepted)); }
  // A flow of the peer's client was opened.
  void on_opened(link::PeerLink& link, link::Stream& stream) { far_.on_opened(link, stream); }
  // The link cannot be used now: flows of this site's clients of which the server cannot have received a byte
  // are decided again, as if they began now.
  void on_link_lost(const link::PeerLink& link) { lost_links_.on_link_lost(link); }
  // Whether on_link_lost() is still in progress for this link.
  bool decides_anew(const link::PeerLink& link) const { return lost_links_.decides_anew(link); }
  // The peer's process has ended: it will not answer pending requests to connect.
  void on_peer_gone(const link::PeerLink& link) { lost_links_.on_peer_gone(link); }
  // Clients, with their servers here and without ports, of peers whose process may have ended: promises to
  // such a client may be lost, and it may reconnect around its peer before that is known. Its bypassing flows
  // wait until that is settled. Returns at most `most` of them.
  std::vector<modules::Ends> in_doubt(std::size_t most) const { return doubt_.all(most); }
  // The features in force have changed, on all links (null) or on this one: running flows of this site's
  // clients change at the next block.
  void apply_features(const link::PeerLink* link = nullptr);
  // Modules of this site's flows whose state was changed by other flows will soon run.
  void run_modules();
  const Sweeps::Counters& sweeps() const { return sweeps_.counters(); }
  // Connections to servers that are made before the peers' clients need them.
  Spares& spares() { return far_.spares(); }
  const Spares& spares() const { return far_.spares(); }
  // Takes effect at once: resets bypassing flows that are no longer allowed.
  void set_closed(Closed closed);
  // The configuration's [limits] have changed.
  void limits_changed();
  // Resets every flow, when the daemon ends.
  void cut_all();

  Decision decide(const boost::asio::ip::address& client, const Destination& destination) const {
    return paths_.decide(client, destination);
  }
  // Why a flow that the peer would open for this client would not be dialled here; `optimised` if it would
  // be.
  Reason decide_for_peer(const link::PeerLink& link, const boost::asio::ip::address& client,
                         const Destination& destination) {
    return far_.decide(link, client, destination);
  }
  // Whether the flow may bypass the link, as far as fail = closed is concerned.
  bool may_leave(const boost::asio::ip::address& client, const Destination& destination) const {
    return paths_.may_leave(client, destination);
  }
  // For explicit listeners, whose clients cannot bypass this proxy: whether one more flow may be relayed
  // outside the link.
  bool has_room(const boost::asio::ip::address& client) const { return admission_.has_room(client); }

  // Called with the clients whose new flows bypass transparent mode, whenever that set changes.
  std::function<void(const Crowded&)> on_crowded;
  // Called after on_peer_gone(), when all of that peer's clients are settled.
  std::function<void()> on_doubt_settled;
  // Called when a server refused or is unreachable: the next connections to it should bypass transparent
  // mode.
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
