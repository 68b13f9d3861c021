// SPDX-License-Identifier: Apache-2.0
// The path of a flow: over the link with the features in force, or bypassing it, and why. Starts flows of
// this site's clients and dials servers for the peers' clients; the pumps are in linked_flow.h and relay.h.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "proxy/config/rules.h"
#include "proxy/flows/dialer.h"
#include "proxy/flows/doubt.h"
#include "proxy/flows/flow_table.h"
#include "proxy/flows/linked_flow.h"
#include "proxy/flows/own_addresses.h"
#include "proxy/flows/peer_shares.h"
#include "proxy/flows/relay.h"
#include "proxy/flows/source_limits.h"
#include "proxy/flows/spares.h"
#include "proxy/flows/sweeps.h"
#include "proxy/log/line_limit.h"

namespace longhaul::flows {

struct Decision {
  config::FlowPolicy policy;
  link::PeerLink* link = nullptr;  // the peer whose link is used; none: bypass
  std::string peer;                // that has the destination, whether its link is used or not
  Reason reason = reasons::optimised;
  bool refused = false;  // fail = closed, and the link cannot be used
};

// fail = closed, as configured. Lifted: by the operator's command, until it is enforced again.
enum class Closed : std::uint8_t { enforced, lifted };

class Flows {
 public:
  // All references outlive this object.
  Flows(boost::asio::io_context& io, const config::Config& config, config::Features& features,
        FlowTable& table, Dialer& dialer, std::vector<std::unique_ptr<link::PeerLink>>& links,
        modules::List modules);
  ~Flows();

  // Of a client of this site. Never fails, never blocks.
  void start(Accepted accepted);
  // Of a client of the peer's site.
  void on_opened(link::PeerLink& link, link::Stream& stream);
  // The link cannot be used now: our clients' flows that the server cannot have received a byte of are
  // decided again, as if they began now.
  void on_link_lost(const link::PeerLink& link);
  // Whether that is still under way.
  bool decides_anew(const link::PeerLink& link) const;
  // The peer's process has ended: its unanswered requests will not be answered.
  void on_peer_gone(const link::PeerLink& link);
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
  Spares& spares() { return spares_; }
  const Spares& spares() const { return spares_; }
  // In force at once: bypassing flows that are no longer allowed are reset.
  void set_closed(Closed closed);
  // The configuration's [limits] have changed.
  void limits_changed();
  // Every flow is reset; for the end of the daemon.
  void cut_all();

  Decision decide(const boost::asio::ip::address& client, const Destination& destination) const;
  // The same for a flow that the peer would open for its client: whether and why not it would be dialled
  // here.
  Reason decide_for_peer(const link::PeerLink& link, const boost::asio::ip::address& client,
                         const Destination& destination);
  // Bypassing the link, as far as fail = closed is concerned.
  bool may_leave(const boost::asio::ip::address& client, const Destination& destination) const;
  // For explicit listeners, whose clients cannot bypass this proxy: whether one more flow is relayed outside
  // the link.
  bool has_room(const boost::asio::ip::address& client) const;

  // Clients whose new flows bypass transparent mode, whenever that changes.
  std::function<void(const Crowded&)> on_crowded;
  // After on_peer_gone(): all of that peer's clients are settled.
  std::function<void()> on_doubt_settled;
  // A server refused, or is unreachable: the next connections to it bypass transparent mode.
  std::function<void(const boost::asio::ip::tcp::endpoint&)> on_server_refused;

 private:
  // `module`: handles the flow's protocol, if there is one.
  void start_linked(Accepted accepted, Decision decision, const modules::Listed* module);
  boost::asio::awaitable<void> start_recognised(Accepted accepted,
                                                std::vector<const modules::Listed*> candidates);
  void start_past(Accepted accepted, FlowRecord& record, bool refused, Buffer first = {});
  Reason admit(const link::PeerLink& link, const link::OpenRequest& request);
  void refuse_opened(link::PeerLink& link, link::Stream& stream, FlowRecord& record);
  void log_refused(const FlowRecord& record, std::string_view remedy);
  void on_not_dialled(FlowRecord& record, const Dialled& dialled, bool would_leave_again);
  const config::Peer* peer_of(const Destination& destination) const;
  void decide_anew(FlowId id, LinkedFlow& flow);
  void apply_features_to(LinkedFlow& flow);
  void enter_doubt(LinkedFlow& flow, const modules::Ends& ends);
  void leave_doubt(LinkedFlow& flow);
  boost::asio::awaitable<void> wait_while_in_doubt(const FlowRecord& record);
  // Null: not both sides have it, or want it for this flow.
  const modules::Listed* agree_on(const modules::Listed* module, const config::Features& wanted,
                                  FlowRecord& record, const link::PeerLink& link);
  // Of modules that flows to this port may be for, and that promise something.
  std::vector<modules::Losses*> losses_of(std::uint16_t port) const;
  // Why a flow that no half of a module reads needs a guard, and so bypasses the link: the client must be told of lost
  // writes, or may have to be soon. None: it needs none.
  std::optional<Reason> why_guarded(const boost::asio::ip::address& client, const Destination& destination) const;
  // To be held while neither a guard nor a half reads it.
  std::vector<std::shared_ptr<void>> unguarded(const FlowRecord& record) const;
  void start_guarded(Accepted accepted, FlowRecord& record, Reason why);
  bool tells_by_reset(const modules::Ends& ends) const;
  LinkedFlow::TellReason tell_reason();
  void log_reason(const FlowRecord& record);
  boost::asio::awaitable<void> relay_past(Accepted accepted, FlowRecord& record, config::Source source,
                                          Buffer first);
  boost::asio::awaitable<std::optional<RelayEnd>> guard_past(boost::asio::ip::tcp::socket& client,
                                                             boost::asio::ip::tcp::socket& server,
                                                             FlowRecord& record, Buffer& first,
                                                             std::vector<std::shared_ptr<void>>& unguarded);
  // How the flow's protocol uses connections that were made ahead; null: this flow gets none.
  const modules::ConnectAhead* connects_ahead(LinkedFlow& flow);
  boost::asio::awaitable<void> serve_again(FlowId id, DialRequest request);
  boost::asio::awaitable<void> serve(FlowId id, DialRequest request,
                                     std::shared_ptr<const bool> leaves_again);
  void on_answer(LinkedFlow& flow, const link::OpenAnswer& answer);
  void tell_refused(const FlowRecord& record);
  void own(std::unique_ptr<LinkedFlow> flow);
  LinkedFlow::OnEnd forget();
  FlowRecord& add_record(const Accepted& accepted, const Decision& decision);
  bool peer_speaks_for(const link::PeerLink& link, const boost::asio::ip::address& client);
  static std::string sharer_of(const FlowRecord& record);
  std::size_t sharers() const;
  // Every record is added and removed by these two.
  FlowRecord& enter(FlowRecord record);
  void remove(FlowId id, FlowTable::End end);
  void tell_crowded(bool sources_changed);

  boost::asio::io_context& io_;
  const config::Config& config_;
  config::Features& features_;
  FlowTable& table_;
  Dialer& dialer_;
  std::vector<std::unique_ptr<link::PeerLink>>& links_;
  modules::List modules_;
  SourceLimits sources_;         // of this site's clients
  bool is_full_ = false;         // as last reported by `Crowded::everyone`
  std::size_t recognising_ = 0;  // accepted, and waiting for their first bytes
  Relay relay_;
  OwnAddresses own_;
  log::LineLimit peer_refusals_{1};
  log::LineLimit reason_lines_{50};
  Closed closed_ = Closed::enforced;
  PeerShares shares_;
  Sweeps::LinkedFlows linked_;
  Sweeps sweeps_;
  Doubt doubt_;
  Spares spares_;
  std::unordered_map<FlowId, boost::asio::cancellation_signal> relayed_;  // bypassing the link

  // Destinations that were recently unreachable over the link, and why.
  struct Remembered {
    Reason reason;
    std::chrono::steady_clock::time_point until;
  };
  std::map<std::string, Remembered> unreachable_;
};

}  // namespace longhaul::flows
