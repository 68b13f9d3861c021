// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <fstream>
#include <random>

#include "proxy/config/changes.h"
#include "proxy/config/read.h"
#include "proxy/control/controlled.h"
#include "proxy/control/server.h"
#include "proxy/control/token.h"
#include "proxy/disk_dictionary.h"
#include "proxy/flows/ends.h"
#include "proxy/flows/flows.h"
#include "proxy/identity/identity.h"
#include "proxy/intercept/closed_rules.h"
#include "proxy/intercept/door_keeper.h"
#include "proxy/intercept/host_checks.h"
#include "proxy/intercept/interception.h"
#include "proxy/intercept/watchdog.h"
#include "proxy/link/io/link_listener.h"
#include "proxy/listeners/forward_listener.h"
#include "proxy/listeners/socks5.h"
#include "proxy/log/log.h"
#include "proxy/lost_keeper.h"
#include "proxy/memory_plan.h"
#include "proxy/path_keeper.h"
#include "proxy/peer_addresses.h"
#include "proxy/version.h"

namespace longhaul {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

// A flow needs one descriptor here, and a relayed one two and at times a pipe.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Buffers of up to a few hundred KiB come and go with every read. Given back to the system each time, their
// pages would be cleared anew each time, which costs more than the encryption.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

// After a pause CUBIC would begin a transfer from a small window. The switch is the system's, not a socket's;
// BBR is exempt by itself.
void keep_window_when_idle(const std::string& congestion_control) {
  if (congestion_control == "bbr") return;
  constexpr const char* kSwitch = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
  std::string value;
  std::ifstream(kSwitch) >> value;
  if (value == "0") return;
  std::ofstream out(kSwitch);
  out << "0" << std::flush;
  if (out) {
    log::info("sysctl", {{"net.ipv4.tcp_slow_start_after_idle", 0}});
  } else {
    log::warn("sysctl", {{"reason", "cannot disable slow start after idle"},
                         {"remedy", "sysctl net.ipv4.tcp_slow_start_after_idle=0"}});
  }
}

// A peer that opens more streams than this breaks the protocol. It does not know [limits] flows: what is
// between is refused flow by flow, and the link stays.
constexpr std::uint32_t kPeerStreams = 65'536;
// Connections that the kernel holds for both transparent listeners: half-open ones, and those not accepted.
constexpr std::size_t kUnderWay = 4 * net::kBacklog;
// So many of those may be there at once without [limits] memory being in question.
constexpr std::uint32_t kBeingRefused = 256;
// What every stream may always receive has room for the short messages of a module, such as the break of an
// oplock: one that waits for credit while idle readers hold all of it would stop the server's other clients.
constexpr std::uint64_t kLeastFloor = 512;

// As many as [limits] flows asks for, or as the memory has such floors for: a quarter of the credit.
std::uint32_t streams_with_credit(const MemoryPlan& plan, const config::Limits& limits) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(limits.flows + kBeingRefused, plan.credit_bytes / 4 / kLeastFloor));
}

std::vector<link::ModuleName> names_of(modules::List modules) {
  std::vector<link::ModuleName> names;
  for (const modules::Listed& module : modules) names.push_back({std::string(module.name), module.version});
  return names;
}

class Daemon final : public control::Controlled {
 public:
  Daemon(const config::Config& config, identity::Identity identity, process::Confinement confinement);

  int run();

  // Controlled
  control::Status status() const override;
  const flows::FlowTable& flows() const override { return table_; }
  const config::Features& features() const override { return features_; }
  control::Forecast forecast(const flows::Tuple& tuple) const override;
  std::string intercept_rules() const override;
  std::string fail_closed_rules() override;
  void change_features(const config::Features& features) override;
  asio::awaitable<control::Cleared> clear_cache() override;
  boost::system::result<void, control::Refusal> intercept(control::InterceptAction action) override;
  boost::system::result<std::vector<std::string>, control::Refusal> reload() override;

 private:
  void start();
  void reload_on_hangup(asio::signal_set& signals);
  void add_link(const config::Peer& peer);
  void apply(config::Config config, identity::Identity identity);
  void apply_peers();
  void finish();
  void stop();
  asio::awaitable<void> shut_down();
  void log_findings();
  void close_door();
  config::TextResult<void> apply_door(config::TextResult<void> done);
  std::unique_ptr<reduction::Reduction> make_codec(const config::Peer& peer, const link::TlsEngine& tls);
  link::udp::PathBook paths() const;
  bool wants_to_divert() const;
  std::vector<asio::ip::address> peer_addresses() const;
  void know_peers();
  void guard_soon();
  void guard_flows();

  config::Config config_;  // in force; a reload replaces what it holds
  const process::Confinement confinement_;
  asio::io_context io_{1};
  identity::Identity identity_;
  link::TlsContext tls_;
  config::Features features_;
  const MemoryPlan plan_;  // of the configuration that the daemon was started with
  HistoryRoom histories_;
  const std::shared_ptr<modules::Memory> module_memory_;
  const std::shared_ptr<smb::LostWrites> lost_writes_;
  LostKeeper lost_keeper_;
  const std::vector<modules::Listed> modules_;
  link::CreditPool pool_;
  link::RetainedBudget retained_;
  DiskDictionary disk_;  // before the links, whose codecs use it
  link::LinkShared shared_;
  std::vector<std::unique_ptr<link::PeerLink>> links_;
  std::vector<std::unique_ptr<link::PeerLink>> removed_links_;  // stopped; their last events may be on their way
  PathKeeper path_keeper_;
  PeerAddresses peer_addresses_;
  flows::FlowTable table_;
  flows::Dialer dialer_;
  flows::Flows flows_;
  std::unique_ptr<link::LinkListener> link_listener_;
  std::vector<std::unique_ptr<listeners::ForwardListener>> forwards_;
  std::unique_ptr<listeners::Socks5Listener> socks_;
  intercept::DoorKeeper door_;
  std::unique_ptr<intercept::Interception> interception_;
  bool guards_soon_ = false;  // guard_flows() is on its way
  std::string intercept_error_;
  std::unique_ptr<control::Server> control_;
  std::unique_ptr<intercept::Watchdog> watchdog_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

Daemon::Daemon(const config::Config& config, identity::Identity identity, process::Confinement confinement)
    : config_(config),
      confinement_(std::move(confinement)),
      identity_(std::move(identity)),
      tls_(identity_),
      features_(config.features),
      plan_(memory_plan(config)),
      histories_(plan_.history_bytes, plan_.disk_bytes > 0),
      module_memory_(std::make_shared<modules::Memory>(plan_.module_bytes)),
      lost_writes_(std::make_shared<smb::LostWrites>(random_number())),
      lost_keeper_(io_, config.state_dir / "lost-writes", lost_writes_),
      modules_(modules::all(module_memory_, plan_.ahead_bytes, lost_writes_)),
      pool_(plan_.credit_bytes, streams_with_credit(plan_, config.limits),
            static_cast<std::uint32_t>(config.peers.size())),
      retained_(plan_.retained_bytes),
      disk_(
          io_, config, plan_,
          [this] {
            for (auto& link : links_) link->on_codec_ready();
          },
          [this] {
            for (auto& link : links_) link->on_second();
          }),
      shared_{.io = io_,
              .tls = tls_,
              .config = config_.link,
              .site = config.site,
              .preshared = identity_.preshared,
              .pool = pool_,
              .retained = retained_,
              .allowed = config.features,
              .max_streams = std::max(2 * config.limits.flows, kPeerStreams),
              .total_rate = {.bits = config.link.total_rate_bits},
              .modules = names_of(modules_),
              .make_codec = [this](const config::Peer& peer,
                                   const link::TlsEngine& tls) { return make_codec(peer, tls); },
              .on_connected =
                  [this](const link::PeerLink& link, const asio::ip::address& from) {
                    peer_addresses_.seen(link.peer().name, from);
                    know_peers();
                    guard_soon();
                  },
              .on_peer_allows = [this] { flows_.apply_features(); },
              .on_link_lost = [this](const link::PeerLink& link) { flows_.on_link_lost(link); },
              .on_peer_gone =
                  [this](const link::PeerLink& link) {
                    flows_.on_peer_gone(link);
                    guard_soon();
                  },
              .on_peer_doubted =
                  [this](const link::PeerLink&) {
                    flows_.look_for_doubt();
                    guard_soon();
                  }},
      path_keeper_(io_, config.state_dir / "paths", [this] { return paths(); }),
      peer_addresses_(config.state_dir / "peer-addresses"),
      dialer_({.allow = config.link.allow}),
      flows_(io_, config_, features_, table_, dialer_, links_, modules_),
      door_(io_, config_) {
  for (const std::string& warning : confinement_.warnings) log::warn("process", {{"warning", warning}});
  for (const std::string& warning : identity_.warnings) log::warn("identity", {{"warning", warning}});
  for (const std::string& warning : memory_warnings(config)) log::warn("memory", {{"warning", warning}});
  for (const config::Peer& peer : config.peers) add_link(peer);
}

void Daemon::add_link(const config::Peer& peer) {
  links_.push_back(std::make_unique<link::PeerLink>(
      shared_, peer, [this](link::PeerLink& link, link::Stream& stream) { flows_.on_opened(link, stream); }));
  for (const std::string& key : peer.fingerprints)
    if (const auto memory = path_keeper_.known().find(key)) links_.back()->recall(*memory);
}

link::udp::PathBook Daemon::paths() const {
  link::udp::PathBook book;
  for (const auto& link : links_)
    if (const auto memory = link->path_memory()) book.put(link->peer().fingerprints.front(), *memory);
  return book;
}

bool Daemon::wants_to_divert() const {
  // A far side that shows servers the clients' addresses must catch the answers to them.
  return config_.link.listen.has_value() || !config_.link.allow.empty();
}

// Those written as addresses. One that is named by a name or dials in is not known here.
std::vector<asio::ip::address> Daemon::peer_addresses() const {
  std::vector<asio::ip::address> addresses;
  for (const config::Peer& peer : config_.peers) {
    boost::system::error_code is_a_name;
    if (!peer.address) continue;
    const auto address = asio::ip::make_address(peer.address->host, is_a_name);
    if (!is_a_name) addresses.push_back(address);
  }
  return addresses;
}

// Places are kept for their handshakes, whatever strangers do.
void Daemon::know_peers() {
  if (link_listener_) link_listener_->know(peer_addresses_.of(config_.peers));
}

void Daemon::guard_soon() {
  if (!std::exchange(guards_soon_, true)) asio::post(io_, [this] { guard_flows(); });
}

// Clients that have something to be told, or perhaps will have, whichever way their next flows come.
void Daemon::guard_flows() {
  guards_soon_ = false;
  if (!interception_) return;
  if (!flows_.in_doubt().empty()) flows_.look_for_doubt();
  const std::vector<modules::Ends>& doubted = flows_.in_doubt();
  std::vector<intercept::GuardedFlows> guarded;
  for (const modules::Listed& module : modules_) {
    std::vector<modules::Ends> all = module.guarded();
    all.insert(all.end(), doubted.begin(), doubted.end());
    for (const modules::Ends& ends : all)
      for (const std::uint16_t port : module.ports)
        guarded.push_back({flows::address_in(ends.client), flows::address_in(ends.server), port});
  }
  interception_->guard(std::move(guarded));
  flows_.run_modules();  // some may have been given up
}

void Daemon::start() {
  auto begin = [this](flows::Accepted accepted) { flows_.start(std::move(accepted)); };
  auto has_room = [this](const asio::ip::address& client) { return flows_.has_room(client); };
  // Clients of transparent mode bypass this proxy by rule; those under way when the rule changes are relayed.
  auto any_room = [this](const asio::ip::address&) {
    return table_.live().size() < 2 * std::size_t{config_.limits.flows} + kUnderWay;
  };
  control_ = std::make_unique<control::Server>(
      io_, *this, control::load_or_make_token(config_.state_dir, config_.control.token_file),
      config_.control.listen);
  if (config_.link.listen)
    link_listener_ = std::make_unique<link::LinkListener>(shared_, *config_.link.listen, links_,
                                                          config_.limits.handshakes);
  know_peers();
  for (const config::Forward& forward : config_.forwards)
    forwards_.push_back(std::make_unique<listeners::ForwardListener>(io_, forward, begin, has_room));
  if (config_.socks.listen)
    socks_ = std::make_unique<listeners::Socks5Listener>(io_, *config_.socks.listen, begin, has_room);

  interception_ = std::make_unique<intercept::Interception>(io_, config_.intercept, features_.fast_connect,
                                                            begin, any_room,
                                                            config_.limits.new_flows_per_source);
  flows_.on_crowded = [this](const flows::Crowded& crowded) { interception_->leave_alone(crowded); };
  flows_.on_server_refused = [this](const asio::ip::tcp::endpoint& server) { interception_->refuse(server); };
  (void)interception_->set_peers(peer_addresses());  // only remembered: nothing is in force yet
  guard_flows();
  for (const modules::Listed& module : modules_) module.on_guarded([this] { guard_soon(); });
  close_door();
  if (config_.intercept.mode == config::Intercept::Mode::tproxy) {
    log_findings();
    auto up = interception_->up();
    // What the configuration asks for and the host refuses is an error at start; later, `intercept up` tries
    // again.
    if (!up) {
      const std::string& why = up.error().message;
      throw net::ListenerError(why.starts_with("[intercept]") ? why : "[intercept] " + why);
    }
    log::info("intercept_up", {});
  } else if (wants_to_divert() && door_.state() == intercept::DoorKeeper::State::missing) {
    // What a server sends to a client's address when this daemon is gone could leave in the clear.
    dialer_.show_clients(false);
    log::warn("divert", {{"reason", door_.error()},
                         {"effect", "servers see this proxy's address instead of the client's"}});
  } else if (wants_to_divert()) {
    auto diverted = interception_->divert();
    dialer_.show_clients(diverted.has_value());
    if (!diverted)
      log::warn("divert", {{"reason", diverted.error().message},
                           {"effect", "servers see this proxy's address instead of the client's"}});
  }
  asio::co_spawn(io_, control_->run(), asio::detached);
  for (auto& link : links_) link->start();
  path_keeper_.begin();
  watchdog_ = std::make_unique<intercept::Watchdog>(io_);
}

// Before a flow can be taken.
void Daemon::close_door() {
  const auto closed = apply_door(door_.begin());
  if (!closed && config_.intercept.mode == config::Intercept::Mode::tproxy)
    throw net::ListenerError("[intercept] " + closed.error().message);
  if (const auto taken_over = intercept::take_over_leftovers(config_); !taken_over)
    log::warn("leftovers", {{"reason", taken_over.error().message}});
}

// What the daemon does itself goes with what the kernel enforces.
config::TextResult<void> Daemon::apply_door(config::TextResult<void> done) {
  const auto rules = intercept::closed_rules(config_);
  const bool lifted = door_.state() == intercept::DoorKeeper::State::lifted;
  flows_.set_closed(lifted ? flows::Closed::lifted : flows::Closed::enforced);
  const bool takes_closed = rules && rules->close_something() && !lifted;
  auto set = interception_->set_closed_flows(takes_closed ? closed_flows_text(*rules, "goto admit") : "");
  if (done && !set) return set;
  return done;
}

std::unique_ptr<reduction::Reduction> Daemon::make_codec(const config::Peer& peer,
                                                         const link::TlsEngine& tls) {
  const std::uint64_t memory = histories_.assign(config_, peer.name);
  return std::make_unique<reduction::Reduction>(
      reduction::Options{.ring_bytes = memory,
                         .peer_ring_bytes = memory,
                         .epoch = random_number(),
                         .store = disk_.store(),
                         .site = site_id(tls.own_fingerprint()),
                         .twin_site = site_id(tls.peer_fingerprint()),
                         .rights = rights_of(config_, peer)});
}

void Daemon::log_findings() {
  const auto findings = intercept::host_findings(config_);
  // Running on would look like success, and no flow would ever be taken.
  for (const intercept::Finding& finding : findings)
    if (finding.weight == intercept::Finding::Weight::blocks)
      throw net::ListenerError("[intercept]: " + finding.sentence + " Remedy: " + finding.remedy + ".");
  for (const intercept::Finding& finding : findings)
    log::warn("host", {{"finding", finding.sentence}, {"remedy", finding.remedy}});
}

// Nothing new begins, and what was sent goes to disk.
void Daemon::finish() {
  forwards_.clear();
  socks_.reset();
  link_listener_.reset();
  if (interception_) interception_->close();
  door_.stop();  // what it enforces stays
  flows_.cut_all();
  disk_.stop();
  path_keeper_.stop();
  for (auto& link : links_) link->finish();
}

void Daemon::stop() {
  for (auto& link : links_) link->stop();
  control_->stop();
}

asio::awaitable<void> Daemon::shut_down() {
  asio::steady_timer timer(io_);
  finish();
  // Two round trips of a satellite line; a peer that does not answer costs no more.
  const auto latest = std::chrono::steady_clock::now() + 2s;
  auto done = [](const auto& link) { return link->finished(); };
  while (!std::all_of(links_.begin(), links_.end(), done) && std::chrono::steady_clock::now() < latest) {
    timer.expires_after(5ms);
    co_await timer.async_wait(asio::use_awaitable);
  }
  stop();
  // What is being said is said within this; nothing that waits longer holds the end up.
  timer.expires_after(200ms);
  co_await timer.async_wait(asio::use_awaitable);
  lost_keeper_.stop();  // flows that were cut have told by now what they had promised
  io_.stop();
}

void Daemon::reload_on_hangup(asio::signal_set& signals) {
  signals.async_wait([this, &signals](boost::system::error_code error, int) {
    if (error) return;
    (void)reload();  // logged
    reload_on_hangup(signals);
  });
}

int Daemon::run() {
  raise_descriptor_limit();
  keep_freed_memory();
  keep_window_when_idle(config_.link.congestion_control);
  std::signal(SIGPIPE, SIG_IGN);
  start();
  asio::signal_set signals(io_, SIGINT, SIGTERM);
  asio::signal_set hangup(io_, SIGHUP);
  reload_on_hangup(hangup);
  signals.async_wait([this, &hangup](boost::system::error_code error, int number) {
    if (error) return;
    hangup.cancel();
    log::info("stopping", {{"signal", number}});
    watchdog_.reset();
    asio::co_spawn(io_, shut_down(), asio::detached);
  });
  log::info("started", {{"site", config_.site},
                        {"version", version()},
                        {"fingerprint", identity_.fingerprint},
                        {"user", confinement_.user},
                        {"control", config::to_text(config_.control.listen)}});
  io_.run();
  log::info("stopped", {});
  return 0;
}

// -------------------------------------------------------------------------------------------------
// Controlled

control::Status Daemon::status() const {
  control::Status status{.site = config_.site, .version = std::string(version()), .confinement = confinement_};
  status.uptime =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_);
  status.flows_limit = config_.limits.flows;
  status.handshakes = shared_.handshakes;
  status.handshakes_limit = config_.limits.handshakes;
  if (link_listener_) status.strangers_refused = link_listener_->refused();
  status.memory_short = pool_.used_up() || retained_.used_up();
  status.module_bytes = module_memory_->used_bytes();
  status.module_memory_short = module_memory_->is_short();
  for (const modules::Listed& module : modules_) status.ahead_bytes += module.ahead_bytes();
  status.memory_limit_bytes = plan_.cap_bytes;
  status.intercept =
      config_.intercept.mode == config::Intercept::Mode::off
          ? control::InterceptState::not_configured
          : (interception_->is_up() ? control::InterceptState::up : control::InterceptState::down);
  status.intercept_error = intercept_error_;
  const auto bypassed = interception_->bypassed();
  for (std::size_t i = 0; i < bypassed.size(); ++i)
    status.bypassed.emplace_back(intercept::kBypassCounters[i], bypassed[i]);
  status.fail_closed = door_.state();
  status.fail_closed_error = door_.error();
  status.disk = disk_.counters();
  if (shared_.udp) status.unknown_datagrams = shared_.udp->counters().unknown;
  status.dictionary_bytes = disk_.memory_bytes();
  for (const auto& link : links_) status.dictionary_bytes += link->dictionary_bytes();
  status.dictionary_limit_bytes = plan_.history_bytes + plan_.store_bytes;
  status.memory_parts = {{"credit", pool_.granted_bytes(), plan_.credit_bytes},
                         {"retained", retained_.used_bytes(), plan_.retained_bytes},
                         {"modules", module_memory_->used_bytes(), plan_.module_bytes},
                         {"ahead", status.ahead_bytes, plan_.ahead_bytes},
                         {"dictionaries", status.dictionary_bytes, status.dictionary_limit_bytes}};
  for (const control::MemoryPart& part : status.memory_parts) status.memory_bytes += part.bytes;
  for (const auto& link : links_) status.links.push_back(link->status());
  status.lost_writes = lost_writes_.get();
  return status;
}

control::Forecast Daemon::forecast(const flows::Tuple& tuple) const {
  flows::Decision decision = flows_.decide(tuple.client.address(), tuple.destination);
  control::Path path = decision.link      ? control::Path::over_link
                       : decision.refused ? control::Path::refused
                                          : control::Path::past_link;
  std::optional<std::size_t> rule;
  if (decision.policy.rule) rule = *decision.policy.rule + 1;
  return {path, decision.reason, decision.peer, decision.policy.features, rule};
}

std::string Daemon::intercept_rules() const { return interception_->rules_text(); }

std::string Daemon::fail_closed_rules() { return door_.listing(); }

void Daemon::change_features(const config::Features& features) {
  features_ = features;
  shared_.allowed = features;
  if (auto set = interception_->set_fast_connect(features.fast_connect); !set)
    log::warn("intercept", {{"reason", set.error().message}});
  for (auto& link : links_) link->apply_features();
  flows_.apply_features();
  for (const auto& [name, value] : config::to_text(features)) log::debug("feature", {{name, value}});
}

asio::awaitable<control::Cleared> Daemon::clear_cache() {
  control::Cleared cleared;
  for (auto& link : links_) cleared.memory_bytes += link->clear_dictionaries();
  cleared.disk_bytes = disk_.clear();
  log::info("cache_cleared", {{"memory_bytes", cleared.memory_bytes}, {"disk_bytes", cleared.disk_bytes}});
  // What the peers did is worth a round trip or two, and no more: they do it whether they answer or not.
  asio::steady_timer timer(io_);
  const auto latest = std::chrono::steady_clock::now() + 2s;
  auto said = [](const auto& link) { return !link->usable() || link->cleared_by_peer(); };
  auto all_said = [&] {
    return std::all_of(links_.begin(), links_.end(), said) &&
           disk_.cleared_key() != cache::ClearedKey::pending;
  };
  while (!all_said() && std::chrono::steady_clock::now() < latest) {
    timer.expires_after(5ms);
    co_await timer.async_wait(asio::use_awaitable);
  }
  cleared.disk_key = disk_.cleared_key();
  for (const auto& link : links_)
    cleared.peers.push_back(
        {link->peer().name, link->usable() ? link->cleared_by_peer() : std::optional<std::uint64_t>()});
  co_return cleared;
}

boost::system::result<void, control::Refusal> Daemon::intercept(control::InterceptAction action) {
  using Action = control::InterceptAction;
  if (action == Action::fail_closed_install || action == Action::fail_closed_remove) {
    const auto done = apply_door(action == Action::fail_closed_install ? door_.enforce() : door_.lift());
    if (!done) return control::Refusal{done.error().message};
    return {};
  }
  if (config_.intercept.mode == config::Intercept::Mode::off)
    return control::Refusal{"the configuration does not set [intercept] mode = \"tproxy\""};
  auto done = action == control::InterceptAction::up ? interception_->up() : interception_->divert();
  intercept_error_ = done ? std::string() : done.error().message;
  if (!done) return control::Refusal{done.error().message};
  log::info(action == control::InterceptAction::up ? "intercept_up" : "intercept_down", {});
  return {};
}

boost::system::result<std::vector<std::string>, control::Refusal> Daemon::reload() {
  const auto refuse = [](const std::string& sentence) {
    log::warn("reload_refused", {{"reason", sentence}, {"effect", "the previous configuration remains in use"}});
    return control::Refusal{sentence};
  };
  try {
    config::Config config = config::read(config_.file);
    identity::Identity identity = identity::load(config);
    const link::TlsContext usable(identity);  // or OpenSSL says why not
    config::Changes changes = config::changes(config_, config);
    if (!changes.fixed.empty()) {
      std::string list;
      for (const std::string& each : changes.fixed) list += (list.empty() ? "" : ", ") + each;
      return refuse(config.file.string() + ": " + list +
                    " cannot be changed while the daemon runs; restart it, or undo that change. Nothing was "
                    "changed.");
    }
    if (identity.fingerprint != identity_.fingerprint)
      changes.live.push_back("the key of this site: now " + identity.fingerprint);
    for (const auto& [peer, key] : identity.preshared)
      if (const auto before = identity_.preshared.find(peer);
          before != identity_.preshared.end() && *before->second != *key)
        changes.live.push_back("the preshared key of " + peer + ", used for the next connection");
    apply(std::move(config), std::move(identity));
    for (const std::string& change : changes.live) log::info("reloaded", {{"changed", change}});
    if (changes.live.empty()) log::info("reloaded", {{"changed", "nothing"}});
    return std::move(changes.live);
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

// Everything was checked: from here on nothing fails.
void Daemon::apply(config::Config config, identity::Identity identity) {
  const bool new_key = identity.fingerprint != identity_.fingerprint;
  // What `longhaul set` has changed since stays, unless the file says something else than before.
  const bool new_features = config.features != config_.features;
  config_ = std::move(config);
  identity_ = std::move(identity);
  // First, as at the start. What was closed already stays so where this fails.
  if (const auto closed = apply_door(door_.begin()); !closed)
    log::error("fail_closed_missing", {{"reason", closed.error().message}});
  for (const std::string& warning : identity_.warnings) log::warn("identity", {{"warning", warning}});
  for (const std::string& warning : config::warnings(config_)) log::warn("configuration", {{"warning", warning}});
  tls_ = link::TlsContext(identity_);
  shared_.preshared = identity_.preshared;
  dialer_.allow(config_.link.allow);
  shared_.total_rate.bits = config_.link.total_rate_bits;
  if (link_listener_) link_listener_->set_max_handshakes(config_.limits.handshakes);
  flows_.limits_changed();
  if (auto set = interception_->set_new_flows_per_source(config_.limits.new_flows_per_source); !set)
    log::warn("intercept", {{"reason", set.error().message}});
  apply_peers();
  if (new_key)
    for (auto& link : links_) link->renew();
  if (new_features)
    change_features(config_.features);
  else
    flows_.apply_features();  // the rules may give running flows others
}

void Daemon::apply_peers() {
  const auto configured = [this](const std::string& name) {
    return std::ranges::find(config_.peers, name, &config::Peer::name);
  };
  const auto gone = std::stable_partition(links_.begin(), links_.end(), [&](const auto& link) {
    return configured(link->peer().name) != config_.peers.end();
  });
  for (auto link = gone; link != links_.end(); ++link) {
    (*link)->stop();
    histories_.forget((*link)->peer().name);
    removed_links_.push_back(std::move(*link));
  }
  links_.erase(gone, links_.end());
  for (auto& link : links_)
    if (const auto& peer = *configured(link->peer().name); peer != link->peer()) link->update(peer);
  // A group concerns all of its peers; one that goes takes its segments along.
  for (auto& link : links_) link->set_rights(rights_of(config_, link->peer()));
  for (const config::Peer& peer : config_.peers) {
    const auto has = [&](const auto& link) { return link->peer().name == peer.name; };
    if (std::ranges::any_of(links_, has)) continue;
    add_link(peer);
    links_.back()->start();
  }
  pool_.share_among(static_cast<std::uint32_t>(links_.size()));
  know_peers();
  if (auto set = interception_->set_peers(peer_addresses()); !set)
    log::warn("intercept", {{"reason", set.error().message}});
}

}  // namespace

int run_daemon(const config::Config& config, identity::Identity identity,
               process::Confinement confinement) {
  // What cannot work on this host is one sentence; everything that was begun is undone by its owner.
  try {
    Daemon daemon(config, std::move(identity), std::move(confinement));
    return daemon.run();
  } catch (const config::ConfigError&) {
    throw;
  } catch (const std::exception& error) {
    throw config::ConfigError(config.file.string() + ": " + error.what());
  }
}

}  // namespace longhaul
