// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <fstream>
#include <random>

#include "proxy/config/read.h"
#include "proxy/daemon_parts.h"
#include "proxy/flows/ends.h"
#include "proxy/log/log.h"
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

// Buffers of up to a few hundred KiB are allocated and freed with every read. If they were returned to the
// system each time, the kernel would clear their pages again each time, which costs more than the encryption.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

// After a pause CUBIC would begin a transfer with a small window. The switch is the system's, not a socket's;
// BBR is exempt.
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

// A peer that opens more streams than this violates the protocol. It does not know [limits] flows: between
// the two limits flows are refused one by one, and the link stays.
constexpr std::uint32_t kPeerStreams = 65'536;
// This many may exist at once before [limits] memory is checked.
constexpr std::uint32_t kBeingRefused = 256;
// Every stream can always receive the short messages of a module, such as the break of an oplock: if such a
// message waited for credit while idle readers hold all of it, the server's other clients would stop.
constexpr std::uint64_t kLeastFloor = 512;

// As many as [limits] flows permits, or as the memory has such floors for: a quarter of the credit.
std::uint32_t streams_with_credit(const MemoryPlan& plan, const config::Limits& limits) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(limits.flows + kBeingRefused, plan.credit_bytes / 4 / kLeastFloor));
}

std::vector<link::ModuleName> names_of(modules::List modules) {
  std::vector<link::ModuleName> names;
  for (const modules::Listed& module : modules)
    names.push_back({std::string(module.descriptor.name), module.descriptor.version});
  return names;
}

}  // namespace

Daemon::Daemon(const config::Config& config, identity::Identity identity, identity::WebTls web,
               process::Confinement confinement, const process::ServiceManager& service)
    : config_(config),
      confinement_(std::move(confinement)),
      service_(service),
      identity_(std::move(identity)),
      web_(std::move(web)),
      key_log_(config.link.key_log ? std::make_shared<link::KeyLog>(config.state_dir / *config.link.key_log)
                                   : nullptr),
      tls_(identity_, key_log_),
      features_(config.features),
      plan_(memory_plan(config)),
      histories_(plan_.history_bytes, plan_.disk_bytes > 0),
      module_memory_(std::make_shared<modules::Memory>(plan_.module_bytes)),
      object_disk_(io_, config, plan_),
      modules_(modules::all(
          module_memory_,
          {.ahead_bytes = plan_.ahead_bytes - plan_.ahead_bytes / 4,
           .cache_bytes = plan_.ahead_bytes / 4,
           .daemon_number = random_number(),
           .owner_of = [this](const modules::Address& client) { return peer_of_client(client); },
           .wall_seconds =
               [] {
                 const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
                 return std::int64_t{std::chrono::duration_cast<std::chrono::seconds>(since_1970).count()};
               },
           .now = [] { return modules::TimePoint::clock::now(); },
           .objects = object_disk_.objects()})),
      pool_(plan_.credit_bytes, streams_with_credit(plan_, config.limits),
            static_cast<std::uint32_t>(config.peers.size())),
      retained_(plan_.retained_bytes),
      disk_(
          io_, config, plan_,
          [this] {
            for (auto& link : links_) link->on_codec_ready();
          },
          [this] {
            for (auto& link : links_) link->dictionary().on_second();
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
              .make_codec = [this](const config::Peer& peer, const link::TlsEngine& tls,
                                   const BlockChecksum& checksum) { return make_codec(peer, tls, checksum); },
              .on_connected =
                  [this](const link::PeerLink& link, const asio::ip::address& from) {
                    peer_addresses_.seen(link.peer().name, from);
                    know_peers();
                    guard_soon();
                  },
              .on_peer_allows = [this](const link::PeerLink& link) { flows_.apply_features(&link); },
              .on_link_lost = [this](const link::PeerLink& link) { flows_.on_link_lost(link); },
              .decides_anew = [this](const link::PeerLink& link) { return flows_.decides_anew(link); },
              .on_peer_gone = [this](const link::PeerLink& link) { flows_.on_peer_gone(link); },
              .on_peer_doubted = [this](const link::PeerLink&) { guard_soon(); }},
      path_keeper_(io_, config.state_dir / "paths", [this] { return paths(); }),
      peer_addresses_(config.state_dir / "peer-addresses"),
      history_keeper_(io_, config.state_dir / "history", table_),
      dialer_({.allow = config.link.allow}),
      flows_(io_, config_, features_, table_, dialer_, links_, modules_),
      door_(io_, config_) {
  for (const std::string& warning : confinement_.warnings) log::warn("process", {{"warning", warning}});
  for (const std::string& warning : identity_.warnings) log::warn("identity", {{"warning", warning}});
  for (const std::string& warning : memory_warnings(config)) log::warn("memory", {{"warning", warning}});
  apply_secrets();
  table_.on_removed = [this](const flows::FlowRecord& record) {
    recent_talkers_.add(record, std::chrono::steady_clock::now());
    if (flow_exporter_) flow_exporter_->flow_ended(record);
  };
  for (const modules::Listed& module : modules_) {
    if (modules::Losses* losses = module.instance->losses()) losses->set_log(&loss_log_);
    if (modules::State* state = module.instance->state())
      state_keepers_.push_back(
          std::make_unique<StateKeeper>(io_, config.state_dir, module.descriptor.state, *state));
    // After the state: what is in both counts once.
    if (modules::Journal* journal = module.instance->journal())
      journal_keepers_.push_back(
          std::make_unique<JournalKeeper>(io_, config.state_dir, module.descriptor.journal, *journal));
  }
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

// Configured addresses. Peers configured by name, and those that dial in, are not known here.
std::vector<asio::ip::address> Daemon::peer_addresses() const {
  std::vector<asio::ip::address> addresses;
  for (const config::Peer& peer : config_.peers) {
    boost::system::error_code is_a_name;
    for (const config::HostPort& at : peer.addresses()) {
      const auto address = asio::ip::make_address(at.host, is_a_name);
      if (!is_a_name) addresses.push_back(address);
    }
  }
  return addresses;
}

// Places are reserved for their handshakes, whatever strangers do.
void Daemon::know_peers() {
  if (link_listener_) link_listener_->know(peer_addresses_.of(config_.peers));
}

// The peer of that client and its records; empty: this site.
std::string Daemon::peer_of_client(const modules::Address& client) const {
  const std::uint32_t number = flows::peer_number_in(client);
  const asio::ip::address address = flows::address_in(client);
  const auto peer = std::ranges::find_if(config_.peers, [&](const config::Peer& each) {
    if (number != 0) return flows::peer_number(each.name) == number;
    return std::ranges::any_of(each.networks,
                               [&](const config::Network& n) { return config::contains(n, address); });
  });
  return peer == config_.peers.end() ? std::string() : peer->name;
}

void Daemon::guard_soon() {
  if (!std::exchange(guards_soon_, true)) asio::post(io_, [this] { guard_flows(); });
}

// Clients that must get a report, or perhaps will have to, whichever path their next flows take.
void Daemon::guard_flows() {
  guards_soon_ = false;
  if (!interception_) return;
  // The same number as of records: the rules' sets have room for both.
  const std::vector<modules::Ends> doubted = flows_.in_doubt(modules::kMostLostFiles);
  std::vector<intercept::GuardedFlows> guarded;
  for (const modules::Listed& module : modules_) {
    modules::Losses* losses = module.instance->losses();
    if (!losses) continue;
    std::vector<modules::Ends> all = losses->guarded();
    all.insert(all.end(), doubted.begin(), doubted.end());
    for (const modules::Ends& ends : all)
      for (const std::uint16_t port : module.descriptor.ports)
        guarded.push_back({flows::address_in(ends.client), flows::address_in(ends.server), port});
  }
  interception_->guard(std::move(guarded));
}

std::unique_ptr<reduction::Reduction> Daemon::make_codec(const config::Peer& peer, const link::TlsEngine& tls,
                                                         const BlockChecksum& checksum) {
  const std::uint64_t memory = histories_.assign(config_, peer.name);
  return std::make_unique<reduction::Reduction>(
      reduction::Options{.ring_bytes = memory,
                         .peer_ring_bytes = memory,
                         .epoch = random_number(),
                         .checksum = checksum,
                         .store = disk_.store(),
                         .site = site_id(tls.own_fingerprint()),
                         .twin_site = site_id(tls.peer_fingerprint()),
                         .rights = rights_of(config_, peer)});
}

// No new flow begins, and data sent so far goes to disk.
void Daemon::finish() {
  forwards_.clear();
  socks_.reset();
  link_listener_.reset();
  if (interception_) interception_->close();
  door_.stop();  // its enforcement stays
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
  // Two round trips of a satellite line; a peer without an answer costs no more.
  const auto latest = std::chrono::steady_clock::now() + 2s;
  auto done = [](const auto& link) { return link->finished(); };
  while (!std::all_of(links_.begin(), links_.end(), done) && std::chrono::steady_clock::now() < latest) {
    timer.expires_after(5ms);
    co_await timer.async_wait(asio::use_awaitable);
  }
  stop();
  // Answers under way complete within this time; requests that wait longer do not delay the end.
  timer.expires_after(200ms);
  co_await timer.async_wait(asio::use_awaitable);
  history_keeper_.stop();
  stop_exports();
  for (auto& keeper : state_keepers_)
    keeper->stop();  // flows that were cut have reported their promises by now
  for (auto& keeper : journal_keepers_) keeper->stop();
  io_.stop();
}

std::string Daemon::service_status() const {
  return "Site " + config_.site + ", " + std::to_string(links_.size()) +
         (links_.size() == 1 ? " peer" : " peers");
}

// From the event loop: a blocked loop sends nothing, and the service manager restarts the daemon.
asio::awaitable<void> Daemon::say_alive(std::chrono::microseconds period) {
  for (asio::steady_timer timer(io_);; co_await timer.async_wait(asio::use_awaitable)) {
    service_.alive();
    timer.expires_after(period);
  }
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
    service_.stopping();
    watchdog_.reset();
    asio::co_spawn(io_, shut_down(), asio::detached);
  });
  log::info("started", {{"site", config_.site},
                        {"version", version()},
                        {"fingerprint", identity_.fingerprint},
                        {"user", confinement_.user},
                        {"control", config::to_text(config_.control.listen)}});
  service_.ready(service_status());
  if (const auto period = service_.alive_period()) asio::co_spawn(io_, say_alive(*period), asio::detached);
  io_.run();
  log::info("stopped", {});
  return 0;
}

int run_daemon(const config::Config& config, identity::Identity identity, identity::WebTls web,
               process::Confinement confinement, const process::ServiceManager& service) {
  // A configuration that this host cannot run gives one sentence; the owners undo everything that was begun.
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
