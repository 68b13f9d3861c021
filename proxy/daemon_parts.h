// SPDX-License-Identifier: Apache-2.0
// The daemon's class, for the sources that it has: how it begins and ends (daemon.cc), what it starts
// (daemon_start.cc), reports (daemon_control.cc), forecasts (daemon_forecast.cc) and reloads (daemon_reload.cc). Included by them alone.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <memory>
#include <vector>

#include "proxy/control/controlled.h"
#include "proxy/control/server.h"
#include "proxy/disk_dictionary.h"
#include "proxy/export/flow_exporter.h"
#include "proxy/export/metric_exporter.h"
#include "proxy/flows/flows.h"
#include "proxy/history_keeper.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/web_tls.h"
#include "proxy/intercept/arrival.h"
#include "proxy/intercept/door_keeper.h"
#include "proxy/intercept/interception.h"
#include "proxy/intercept/watchdog.h"
#include "proxy/link/io/link_listener.h"
#include "proxy/listeners/forward_listener.h"
#include "proxy/listeners/socks5.h"
#include "proxy/loss_log.h"
#include "proxy/memory_plan.h"
#include "proxy/object_disk.h"
#include "proxy/path_keeper.h"
#include "proxy/peer_addresses.h"
#include "proxy/process/confinement.h"
#include "proxy/process/service_manager.h"
#include "proxy/journal_keeper.h"
#include "proxy/state_keeper.h"

namespace longhaul {

class Daemon final : public control::Controlled {
 public:
  Daemon(const config::Config& config, identity::Identity identity, identity::WebTls web,
         process::Confinement confinement, const process::ServiceManager& service);

  int run();

  // Controlled
  control::Status status() const override;
  const flows::FlowTable& flows() const override { return table_; }
  const flows::RecentTalkers& recent_talkers() const override { return recent_talkers_; }
  const config::Features& features() const override { return features_; }
  const config::Features& configured_features() const override { return config_.features; }
  const control::History& history() const override { return history_keeper_.history(); }
  control::Forecast forecast(const flows::Tuple& tuple) override;
  std::optional<boost::asio::ip::address> likely_client(const flows::Destination& server) const override;
  std::string intercept_rules() const override;
  std::string fail_closed_rules() override;
  void change_features(const config::Features& features) override;
  boost::asio::awaitable<control::Cleared> clear_cache(control::ClearWhat what) override;
  boost::system::result<void, control::Refusal> intercept(control::InterceptAction action) override;
  boost::system::result<std::vector<std::string>, control::Refusal> reload() override;

 private:
  void start();
  void reload_on_hangup(boost::asio::signal_set& signals);
  boost::system::result<std::vector<std::string>, control::Refusal> read_again();
  std::string service_status() const;
  control::Forecast forecast_here(const flows::Tuple& tuple) const;
  control::Forecast forecast_for(const link::PeerLink& link, const flows::Tuple& tuple);
  boost::asio::awaitable<void> say_alive(std::chrono::microseconds period);
  void add_link(const config::Peer& peer);
  void apply(config::Config config, identity::Identity identity, identity::WebTls web);
  void apply_peers();
  void apply_secrets();
  void finish();
  void stop();
  boost::asio::awaitable<void> shut_down();
  void log_findings();
  void measure(const flows::FlowBytes& bytes);
  void begin_exports();
  void stop_exports();
  void close_door();
  config::TextResult<void> apply_door(config::TextResult<void> done);
  std::unique_ptr<reduction::Reduction> make_codec(const config::Peer& peer, const link::TlsEngine& tls,
                                                   const BlockChecksum& checksum);
  link::udp::PathBook paths() const;
  bool wants_to_divert() const;
  std::vector<boost::asio::ip::address> peer_addresses() const;
  void know_peers();
  std::string peer_of_client(const modules::Address& client) const;
  void guard_soon();
  void guard_flows();

  config::Config config_;  // in force; a reload replaces its content
  const process::Confinement confinement_;
  const process::ServiceManager& service_;
  boost::asio::io_context io_{1};
  identity::Identity identity_;
  identity::WebTls web_;
  const std::shared_ptr<link::KeyLog> key_log_;  // null: none
  link::TlsContext tls_;
  config::Features features_;
  const MemoryPlan plan_;  // of the configuration that the daemon was started with
  HistoryRoom histories_;
  const std::shared_ptr<modules::Memory> module_memory_;
  LossLog loss_log_;
  ObjectDisk object_disk_;  // before the modules, which use it
  const std::vector<modules::Listed> modules_;
  std::vector<std::unique_ptr<StateKeeper>> state_keepers_;
  std::vector<std::unique_ptr<JournalKeeper>> journal_keepers_;
  link::CreditPool pool_;
  link::RetainedBudget retained_;
  DiskDictionary disk_;  // before the links, whose codecs use it
  link::LinkShared shared_;
  std::vector<std::unique_ptr<link::PeerLink>> links_;
  std::vector<std::unique_ptr<link::PeerLink>> removed_links_;  // stopped; their last events may be under way
  PathKeeper path_keeper_;
  PeerAddresses peer_addresses_;
  flows::FlowTable table_;
  flows::RecentTalkers recent_talkers_;
  HistoryKeeper history_keeper_;
  control::RecentRates rates_;
  flows::Dialer dialer_;
  flows::Flows flows_;
  std::unique_ptr<link::LinkListener> link_listener_;
  std::vector<std::unique_ptr<listeners::ForwardListener>> forwards_;
  std::unique_ptr<listeners::Socks5Listener> socks_;
  intercept::DoorKeeper door_;
  std::unique_ptr<intercept::Interception> interception_;
  bool guards_soon_ = false;  // guard_flows() is under way
  std::string intercept_error_;
  std::unique_ptr<control::Server> control_;
  std::unique_ptr<exporting::FlowExporter> flow_exporter_;
  std::unique_ptr<exporting::MetricExporter> metric_exporter_;
  std::unique_ptr<intercept::Watchdog> watchdog_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace longhaul
