// SPDX-License-Identifier: Apache-2.0
// The links to all configured peers, and what they share: the listener, memory, the dictionaries, and what is
// remembered of peers across restarts. link/ has the single link.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proxy/control/controlled.h"
#include "proxy/disk_dictionary.h"
#include "proxy/flows/flows.h"
#include "proxy/link/io/link_listener.h"
#include "proxy/memory_plan.h"
#include "proxy/path_keeper.h"
#include "proxy/peer_addresses.h"
#include "proxy/settings_in_force.h"

namespace longhaul {

class PeerLinks {
 public:
  using All = std::vector<std::unique_ptr<link::PeerLink>>;

  // Opens the disk dictionary; there are no links before add_configured(). All references outlive this
  // object; a reload may change the settings. Throws cache::StoreInUse.
  PeerLinks(boost::asio::io_context& io, const SettingsInForce& settings, const MemoryPlan& plan,
            modules::List modules);
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;

  // One link for each peer. Their streams and events concern `flows`; `on_doubt` is called when clients of a
  // peer may have to be guarded, or no longer. Before listen().
  void add_configured(flows::Flows& flows, std::function<void()> on_doubt);
  // On [link] listen, if it is set. Throws net::ListenerError.
  void listen();
  void begin();
  // No peer connects any more.
  void close_listener() { listener_.reset(); }
  // Data sent so far goes to disk; finished() says when that is done.
  void finish();
  bool finished() const;
  void stop();

  // In the order of the configuration at the start; peers that a reload adds follow.
  All& all() { return links_; }
  const All& all() const { return links_; }
  net::NameResolver& resolver() { return shared_.resolver; }
  DiskDictionary& disk() { return disk_; }

  // After a reload: secrets and limits, then the peers, then this site's key if it has changed.
  void apply_settings();
  void apply_peers();
  void renew();
  // This side's features in force.
  void allow(const config::Features& features);
  // Drops the dictionaries in memory; returns their bytes.
  std::uint64_t clear_memory();
  // The use of these shares of [limits] memory.
  std::uint64_t credit_bytes() const { return pool_.granted_bytes(); }
  std::uint64_t retained_bytes() const { return retained_.used_bytes(); }
  void report_to(control::Status& status) const;

 private:
  void add(const config::Peer& peer);
  void reserve_handshakes();
  link::udp::PathBook paths() const;
  std::unique_ptr<reduction::Reduction> make_codec(const config::Peer& peer, const link::TlsEngine& tls,
                                                   const BlockChecksum& checksum);

  const SettingsInForce& settings_;
  HistoryRoom histories_;
  link::CreditPool pool_;
  link::RetainedBudget retained_;
  DiskDictionary disk_;  // before the links, whose codecs use it
  link::LinkShared shared_;
  link::PeerLink::OnOpened on_opened_;
  All links_;
  All removed_links_;  // stopped; their last events may be under way
  PathKeeper path_keeper_;
  PeerAddresses peer_addresses_;
  std::unique_ptr<link::LinkListener> listener_;  // none: [link] listen is not set
};

}  // namespace longhaul
