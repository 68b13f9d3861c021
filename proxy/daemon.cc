// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <memory>
#include <vector>

#include "proxy/cache_clearing.h"
#include "proxy/config/read.h"
#include "proxy/control/controlled.h"
#include "proxy/control/metrics.h"
#include "proxy/control/server.h"
#include "proxy/control/token.h"
#include "proxy/exports.h"
#include "proxy/flow_forecast.h"
#include "proxy/flow_guards.h"
#include "proxy/flows/flows.h"
#include "proxy/history_keeper.h"
#include "proxy/intercept/watchdog.h"
#include "proxy/likely_client.h"
#include "proxy/listeners/forward_listener.h"
#include "proxy/listeners/socks5.h"
#include "proxy/log/log.h"
#include "proxy/memory_plan.h"
#include "proxy/module_host.h"
#include "proxy/net/interfaces.h"
#include "proxy/peer_links.h"
#include "proxy/process/tuning.h"
#include "proxy/reload.h"
#include "proxy/settings_in_force.h"
#include "proxy/status_report.h"
#include "proxy/transparent_mode.h"
#include "proxy/version.h"

namespace longhaul {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// Owns the parts, starts and stops them in order, and passes commands of the control API to them.
class Daemon final : public control::Controlled {
 public:
  Daemon(const config::Config& config, identity::Identity identity, identity::WebTls web,
         process::Confinement confinement, const process::ServiceManager& service);

  int run();

  // Controlled
  control::Status status() const override { return report_.now(); }
  const flows::FlowTable& flows() const override { return table_; }
  const flows::RecentTalkers& recent_talkers() const override { return recent_talkers_; }
  const config::Features& features() const override { return features_; }
  const config::Features& configured_features() const override { return config_.features; }
  const control::History& history() const override { return history_keeper_.history(); }
  control::Forecast forecast(const flows::Tuple& tuple) override { return forecast_.of(tuple); }
  std::optional<asio::ip::address> likely_client(const flows::Destination& server) const override {
    return longhaul::likely_client(config_, net::interfaces(), server);
  }
  std::string intercept_rules() const override { return transparent_.rules(); }
  std::string fail_closed_rules() override { return transparent_.fail_closed_rules(); }
  void change_features(const config::Features& features) override;
  asio::awaitable<control::Cleared> clear_cache(control::ClearWhat what) override {
    return longhaul::clear_cache(io_, modules_, links_, what);
  }
  boost::system::result<void, control::Refusal> intercept(control::InterceptAction action) override {
    return transparent_.command(action);
  }
  boost::system::result<std::vector<std::string>, control::Refusal> reload() override;

 private:
  void open_listeners();
  void start();
  void reload_on_hangup(asio::signal_set& signals);
  std::string service_status() const;
  asio::awaitable<void> say_alive(std::chrono::microseconds period);
  void apply(NewSettings settings);
  void finish();
  asio::awaitable<void> shut_down();

  SettingsInForce settings_;
  const config::Config& config_;  // in force
  const process::Confinement confinement_;
  const process::ServiceManager& service_;
  asio::io_context io_{1};
  config::Features features_;
  const MemoryPlan plan_;  // of the configuration at the start
  ModuleHost modules_;
  PeerLinks links_;
  flows::FlowTable table_;
  flows::RecentTalkers recent_talkers_;
  HistoryKeeper history_keeper_;
  Exports exports_;
  flows::Dialer dialer_;
  flows::Flows flows_;
  std::vector<std::unique_ptr<listeners::ForwardListener>> forwards_;
  std::unique_ptr<listeners::Socks5Listener> socks_;
  TransparentMode transparent_;
  FlowGuards guards_;
  FlowForecast forecast_;
  StatusReport report_;
  std::unique_ptr<control::Server> control_;
  std::unique_ptr<intercept::Watchdog> watchdog_;
};

Daemon::Daemon(const config::Config& config, identity::Identity identity, identity::WebTls web,
               process::Confinement confinement, const process::ServiceManager& service)
    : settings_(config, std::move(identity), std::move(web)),
      config_(settings_.config()),
      confinement_(std::move(confinement)),
      service_(service),
      features_(config.features),
      plan_(memory_plan(config)),
      modules_(io_, config_, plan_),
      links_(io_, settings_, plan_, modules_.list()),
      history_keeper_(io_, config.state_dir / "history", table_),
      exports_(io_, config_, table_, links_.resolver()),
      dialer_({.allow = config.link.allow}),
      flows_(io_, config_, features_, table_, dialer_, links_.all(), modules_.list()),
      transparent_(io_, config_, features_.fast_connect, flows_, table_, dialer_),
      guards_(io_, flows_, modules_.list(), transparent_),
      forecast_(config_, features_, flows_, links_.all(), transparent_),
      report_(config_, confinement_, plan_,
              {.modules = modules_,
               .links = links_,
               .flows = flows_,
               .transparent = transparent_,
               .exports = exports_}) {
  for (const std::string& warning : confinement_.warnings) log::warn("process", {{"warning", warning}});
  for (const std::string& warning : settings_.identity().warnings)
    log::warn("identity", {{"warning", warning}});
  for (const std::string& warning : memory_warnings(config)) log::warn("memory", {{"warning", warning}});
  modules_.use_secrets(settings_.identity().servers);
  table_.on_removed = [this](const flows::FlowRecord& record) {
    recent_talkers_.add(record, std::chrono::steady_clock::now());
    exports_.flow_ended(record);
  };
  modules_.keep_files();
  links_.add_configured(flows_, [this] { guards_.update_soon(); });
}

void Daemon::open_listeners() {
  auto begin = [this](flows::Accepted accepted) { flows_.start(std::move(accepted)); };
  auto has_room = [this](const asio::ip::address& client) { return flows_.has_room(client); };
  control_ = std::make_unique<control::Server>(
      io_, *this, control::load_or_make_token(config_.state_dir, config_.control.token_file),
      config_.control.listen);
  if (config_.control.tls_listen) control_->listen_tls(*config_.control.tls_listen, settings_.web().control);
  links_.listen();
  for (const config::Forward& forward : config_.forwards)
    forwards_.push_back(std::make_unique<listeners::ForwardListener>(io_, forward, begin, has_room));
  if (config_.socks.listen)
    socks_ = std::make_unique<listeners::Socks5Listener>(io_, *config_.socks.listen, begin, has_room);
}

void Daemon::start() {
  open_listeners();
  guards_.begin();
  transparent_.begin();
  asio::co_spawn(io_, control_->run(), asio::detached);
  links_.begin();
  history_keeper_.on_sample = [this](const flows::FlowBytes& bytes) { report_.measure(bytes); };
  history_keeper_.begin();
  exports_.begin(settings_.web().collector, [this] {
    return control::metric_families(status(), table_, features_, control_->counters());
  });
  watchdog_ = std::make_unique<intercept::Watchdog>(io_);
}

// Accepts no new flows, and stores data sent so far on disk.
void Daemon::finish() {
  forwards_.clear();
  socks_.reset();
  links_.close_listener();
  transparent_.close();
  flows_.cut_all();
  links_.finish();
}

asio::awaitable<void> Daemon::shut_down() {
  asio::steady_timer timer(io_);
  finish();
  // Two round trips of a satellite line: the limit for a peer that does not respond.
  const auto latest = std::chrono::steady_clock::now() + 2s;
  while (!links_.finished() && std::chrono::steady_clock::now() < latest) {
    timer.expires_after(5ms);
    co_await timer.async_wait(asio::use_awaitable);
  }
  links_.stop();
  control_->stop();
  // Pending responses complete within this time; requests that wait longer do not delay the end.
  timer.expires_after(200ms);
  co_await timer.async_wait(asio::use_awaitable);
  history_keeper_.stop();
  table_.on_removed = nullptr;
  exports_.stop();
  modules_.stop();  // the aborted flows have reported their promises by now
  io_.stop();
}

void Daemon::reload_on_hangup(asio::signal_set& signals) {
  signals.async_wait([this, &signals](boost::system::error_code error, int) {
    if (error) return;
    (void)reload();  // logged
    reload_on_hangup(signals);
  });
}

boost::system::result<std::vector<std::string>, control::Refusal> Daemon::reload() {
  service_.reloading();
  auto done = reload_settings(settings_, [this](NewSettings settings) { apply(std::move(settings)); });
  service_.ready(done ? service_status() : "Reload refused: " + done.error().sentence);
  return done;
}

// Everything was checked before, so nothing here can fail.
void Daemon::apply(NewSettings settings) {
  const bool new_key = settings.identity.fingerprint != settings_.identity().fingerprint;
  // Changes by `longhaul set` stay, unless the file's value has changed.
  const bool new_features = settings.config.features != config_.features;
  settings_.replace(std::move(settings.config), std::move(settings.identity), std::move(settings.web));
  if (settings_.web().control) control_->use(settings_.web().control);  // its certificate may have changed
  transparent_.enforce_again();
  for (const std::string& warning : settings_.identity().warnings)
    log::warn("identity", {{"warning", warning}});
  for (const std::string& warning : config::warnings(config_))
    log::warn("configuration", {{"warning", warning}});
  modules_.use_secrets(settings_.identity().servers);
  dialer_.allow(config_.link.allow);
  links_.apply_settings();
  flows_.limits_changed();
  transparent_.apply_limits();
  links_.apply_peers();
  transparent_.apply_peers();
  if (new_key) links_.renew();
  if (new_features)
    change_features(config_.features);
  else
    flows_.apply_features();  // the rules may change the features of running flows
}

void Daemon::change_features(const config::Features& features) {
  features_ = features;
  transparent_.set_fast_connect(features.fast_connect);
  links_.allow(features);
  flows_.apply_features();
  for (const auto& [name, value] : config::to_text(features)) log::debug("feature", {{name, value}});
}

std::string Daemon::service_status() const {
  return "Site " + config_.site + ", " + std::to_string(links_.all().size()) +
         (links_.all().size() == 1 ? " peer" : " peers");
}

// Runs on the event loop: a blocked loop sends nothing, so the service manager restarts the daemon.
asio::awaitable<void> Daemon::say_alive(std::chrono::microseconds period) {
  for (asio::steady_timer timer(io_);; co_await timer.async_wait(asio::use_awaitable)) {
    service_.alive();
    timer.expires_after(period);
  }
}

int Daemon::run() {
  process::tune(config_.link.congestion_control);
  std::signal(SIGPIPE, SIG_IGN);
  start();
  asio::signal_set signals(io_, SIGINT, SIGTERM);
  asio::signal_set hangup(io_, SIGHUP);
  reload_on_hangup(hangup);
  signals.async_wait([this, &hangup](boost::system::error_code error, int number) {
    if (error) return;
    hangup.cancel();
    log::info("stopping", {{"signal", number}});
    service_.stopping();
    watchdog_.reset();
    asio::co_spawn(io_, shut_down(), asio::detached);
  });
  log::info("started", {{"site", config_.site},
                        {"version", version()},
                        {"fingerprint", settings_.identity().fingerprint},
                        {"user", confinement_.user},
                        {"control", config::to_text(config_.control.listen)}});
  service_.ready(service_status());
  if (const auto period = service_.alive_period()) asio::co_spawn(io_, say_alive(*period), asio::detached);
  io_.run();
  log::info("stopped", {});
  return 0;
}

}  // namespace

int run_daemon(const config::Config& config, identity::Identity identity, identity::WebTls web,
               process::Confinement confinement, const process::ServiceManager& service) {
  // If this host cannot run the configuration, the error is one sentence; destructors undo everything that
  // was started.
  try {
    Daemon daemon(config, std::move(identity), std::move(web), std::move(confinement), service);
    return daemon.run();
  } catch (const config::ConfigError&) {
    throw;
  } catch (const std::exception& error) {
    throw config::ConfigError(config.file.string() + ": " + error.what());
  }
}

}  // namespace longhaul
