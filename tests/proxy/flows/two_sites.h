// SPDX-License-Identifier: Apache-2.0
// Two sites in one process, with a real link between them over loopback: what the daemon puts together,
// without its files, listeners and control API. Clients and servers are sockets of the test.
#pragma once
#include "probe_module.h"
#include "proxy/flows/flows.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/keygen.h"
#include "proxy/link/io/link_listener.h"
#include "proxy/loopback.h"
#include "proxy/temporary_folder.h"

namespace longhaul::testing {

enum class Reduces : std::uint8_t { no, yes };

inline std::vector<link::ModuleName> names_of(modules::List list) {
  std::vector<link::ModuleName> names;
  for (const modules::Listed& module : list)
    names.push_back({std::string(module.descriptor.name), module.descriptor.version});
  return names;
}

struct Site {
  Site(asio::io_context& io, config::Config settings, const identity::Made& made, modules::List modules,
       Reduces reduces)
      : config(std::move(settings)),
        identity(identity::load(config::Identity{made.certificate, made.private_key})),
        tls(identity),
        features(config.features),
        shared{.io = io,
               .tls = tls,
               .config = config.link,
               .site = config.site,
               .preshared = {},
               .pool = pool,
               .retained = retained,
               .allowed = config.features,
               .max_streams = 1024,
               .modules = names_of(modules),
               .on_link_lost = [this](const link::PeerLink& link) { flows.on_link_lost(link); },
               .decides_anew = [this](const link::PeerLink& link) { return flows.decides_anew(link); },
               .on_peer_gone = [this](const link::PeerLink& link) { flows.on_peer_gone(link); }},
        dialer({.allow = config.link.allow}),
        flows(io, config, features, table, dialer, links, modules) {
    if (reduces == Reduces::yes)
      shared.make_codec = [](const config::Peer&, const link::TlsEngine&, const BlockChecksum& checksum) {
        return std::make_unique<reduction::Reduction>(reduction::Options{
            .ring_bytes = 16 << 20, .peer_ring_bytes = 16 << 20, .epoch = 1, .checksum = checksum});
      };
    for (const config::Peer& peer : config.peers)
      links.push_back(std::make_unique<link::PeerLink>(
          shared, peer,
          [this](link::PeerLink& link, link::Stream& stream) { flows.on_opened(link, stream); }));
  }
  ~Site() {
    flows.cut_all();
    for (auto& link : links) link->stop();
  }

  config::Config config;
  identity::Identity identity;
  link::TlsContext tls;
  config::Features features;
  link::CreditPool pool{64 << 20, 1024};
  link::RetainedBudget retained{64 << 20};
  link::LinkShared shared;
  std::vector<std::unique_ptr<link::PeerLink>> links;
  flows::FlowTable table;
  flows::Dialer dialer;
  flows::Flows flows;
  std::unique_ptr<link::LinkListener> listener;
};

class TwoSites {
 public:
  // `line`, where there is one, makes another port of the one on which the far side listens: the near side
  // dials that. It carries TCP, and there is no UDP beside it.
  explicit TwoSites(asio::io_context& io, modules::List near_modules = {}, modules::List far_modules = {},
                    Reduces reduces = Reduces::no,
                    const std::function<std::uint16_t(std::uint16_t)>& line = {}) {
    const auto near_key = identity::keygen("near", folder_.path()),
               far_key = identity::keygen("far", folder_.path());
    const config::Network loopback = *config::parse_network("127.0.0.1");
    config::Config settings;
    settings.features = config::standard_features(modules::probe_table());
    settings.features.transport = config::Transport::tcp;
    settings.link.allow = {loopback};
    settings.site = "far";
    settings.peers = {
        {.name = "near", .address = {}, .fingerprints = {near_key.fingerprint}, .networks = {}}};
    far = std::make_unique<Site>(io, settings, far_key, far_modules, reduces);
    far->listener =
        std::make_unique<link::LinkListener>(far->shared, config::HostPort{"127.0.0.1", 0}, far->links, 8);
    settings.site = "near";
    const std::uint16_t port = far->shared.udp->port();
    if (line) far->shared.udp.reset();
    settings.peers = {{.name = "far",
                       .address = config::HostPort{"127.0.0.1", line ? line(port) : port},
                       .fingerprints = {far_key.fingerprint},
                       .networks = {loopback}}};
    near = std::make_unique<Site>(io, settings, near_key, near_modules, reduces);
    near->links[0]->start();
  }

  asio::awaitable<void> link_up() {
    asio::steady_timer soon(co_await asio::this_coro::executor);
    while (!near->links[0]->usable() || !far->links[0]->usable()) {
      soon.expires_after(2ms);
      co_await soon.async_wait(asio::use_awaitable);
    }
  }
  // A client's connection to any listener there, through both.
  asio::awaitable<tcp::socket> connect(tcp::endpoint server) {
    SocketPair pair = co_await socket_pair();
    flows::Accepted accepted{.socket = std::move(pair.far),
                             .client = pair.near.local_endpoint(),
                             .destination = {.host = "", .address = server.address(), .port = server.port()}};
    near->flows.start(std::move(accepted));
    co_return std::move(pair.near);
  }

  std::unique_ptr<Site> near, far;

 private:
  TemporaryFolder folder_;
};

}  // namespace longhaul::testing
