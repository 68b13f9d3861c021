// SPDX-License-Identifier: Apache-2.0
// The links to all configured peers, and the parts that they share: the listener, memory, the dictionaries,
// and data about peers that is stored across restarts. link/ has the single link.
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

  // Adds one link for each peer. Their streams and events are passed to `flows`; `on_doubt` is called when
  // the clients of peers that must be guarded may have changed. Call before listen().
  void add_configured(flows::Flows& flows, std::function<void()> on_doubt);
  // Listens on [link] listen, if it is set. Throws net::ListenerError.
  void listen();
  void begin();
  // Accepts no further connections of peers.
  void close_listener() { listener_.reset(); }
  // Stores data sent so far on disk; finished() returns true when that is done.
  void finish();
  bool finished() const;
  void stop();

  // In the order of the configuration at the start, then the peers that a reload added.
  All& all() { return links_; }
  const All& all() const { return links_; }
  net::NameResolver& resolver() { return shared_.resolver; }
  DiskDictionary& disk() { return disk_; }

  // After a reload: secrets and limits, then the peers, then this site's key if it has changed.
  void apply_settings();
  void apply_peers();
  void renew();
  // Sets this side's features in force.
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
  DiskDictionary disk_;  // precedes the links, whose codecs use it
  link::LinkShared shared_;
  link::PeerLink::OnOpened on_opened_;
  All links_;
  All removed_links_;  // stopped; their last events may be pending
  PathKeeper path_keeper_;
  PeerAddresses peer_addresses_;
  std::unique_ptr<link::LinkListener> listener_;  // null if [link] listen is not set
};

}  // namespace longhaul
