// SPDX-License-Identifier: Apache-2.0
#include "proxy/peer_links.h"

#include <algorithm>
#include <utility>

#include "proxy/random_number.h"

namespace longhaul {
namespace asio = boost::asio;
namespace {

// A peer that opens more streams than this violates the protocol. Peers are not informed of [limits] flows:
// between the two limits flows are refused one by one, and the link continues.
constexpr std::uint32_t kPeerStreams = 65'536;
// This many may exist at once before [limits] memory is checked.
constexpr std::uint32_t kBeingRefused = 256;
// Reserved credit, so that every stream can always receive short messages of a module, such as an oplock
// break: if such a message had to wait while idle readers hold all the credit, the server's other clients
// would stall.
constexpr std::uint64_t kLeastFloor = 512;

// As many as [limits] flows permits, or as have this reserve in a quarter of the credit.
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

PeerLinks::PeerLinks(asio::io_context& io, const SettingsInForce& settings, const MemoryPlan& plan,
                     modules::List modules)
    : settings_(settings),
      histories_(plan.history_bytes, plan.disk_bytes > 0),
      pool_(plan.credit_bytes, streams_with_credit(plan, settings.config().limits),
            static_cast<std::uint32_t>(settings.config().peers.size())),
      retained_(plan.retained_bytes),
      disk_(
          io, settings.config(), plan,
          [this] {
            for (auto& link : links_) link->on_codec_ready();
          },
          [this] {
            for (auto& link : links_) link->dictionary().on_second();
          }),
      shared_{
          .io = io,
          .tls = settings.tls(),
          .config = settings.config().link,
          .site = settings.config().site,
          .preshared = settings.identity().preshared,
          .pool = pool_,
          .retained = retained_,
          .allowed = settings.config().features,
          .max_streams = std::max(2 * settings.config().limits.flows, kPeerStreams),
          .total_rate = {.bits = settings.config().link.total_rate_bits},
          .modules = names_of(modules),
          .make_codec = [this](const config::Peer& peer, const link::TlsEngine& tls,
                               const BlockChecksum& checksum) { return make_codec(peer, tls, checksum); }},
      path_keeper_(io, settings.config().state_dir / "paths", [this] { return paths(); }),
      peer_addresses_(settings.config().state_dir / "peer-addresses") {}

void PeerLinks::add_configured(flows::Flows& flows, std::function<void()> on_doubt) {
  shared_.on_connected = [this, on_doubt](const link::PeerLink& link, const asio::ip::address& from) {
    peer_addresses_.seen(link.peer().name, from);
    reserve_handshakes();
    on_doubt();
  };
  shared_.on_peer_allows = [&flows](const link::PeerLink& link) { flows.apply_features(&link); };
  shared_.on_link_lost = [&flows](const link::PeerLink& link) { flows.on_link_lost(link); };
  shared_.decides_anew = [&flows](const link::PeerLink& link) { return flows.decides_anew(link); };
  shared_.on_peer_gone = [&flows](const link::PeerLink& link) { flows.on_peer_gone(link); };
  shared_.on_peer_doubted = [on_doubt](const link::PeerLink&) { on_doubt(); };
  on_opened_ = [&flows](link::PeerLink& link, link::Stream& stream) { flows.on_opened(link, stream); };
  for (const config::Peer& peer : settings_.config().peers) add(peer);
}

void PeerLinks::add(const config::Peer& peer) {
  links_.push_back(std::make_unique<link::PeerLink>(shared_, peer, on_opened_));
  std::vector<std::string> lines{std::string()};  // by name; the first: without paths
  for (const config::PeerPath& path : peer.paths) lines.push_back(path.name);
  for (const std::string& line : lines)
    for (const std::string& key : peer.fingerprints)
      if (const auto memory = path_keeper_.recall({key, line})) links_.back()->recall({line, *memory});
}

void PeerLinks::listen() {
  const config::Config& config = settings_.config();
  if (config.link.listen)
    listener_ =
        std::make_unique<link::LinkListener>(shared_, *config.link.listen, links_, config.limits.handshakes);
  reserve_handshakes();
}

void PeerLinks::begin() {
  for (auto& link : links_) link->start();
  path_keeper_.begin();
}

void PeerLinks::finish() {
  disk_.stop();
  path_keeper_.stop();
  for (auto& link : links_) link->finish();
}

bool PeerLinks::finished() const {
  return std::ranges::all_of(links_, [](const auto& link) { return link->finished(); });
}

void PeerLinks::stop() {
  for (auto& link : links_) link->stop();
}

link::udp::PathBook PeerLinks::paths() const {
  link::udp::PathBook book;
  for (const auto& link : links_)
    for (const auto& [line, memory] : link->line_memories())
      book.put({link->peer().fingerprints.front(), line}, memory);
  return book;
}

// Reserves handshakes for peers, so that strangers cannot prevent them from connecting.
void PeerLinks::reserve_handshakes() {
  if (listener_) listener_->know(peer_addresses_.of(settings_.config().peers));
}

std::unique_ptr<reduction::Reduction> PeerLinks::make_codec(const config::Peer& peer,
                                                            const link::TlsEngine& tls,
                                                            const BlockChecksum& checksum) {
  const std::uint64_t memory = histories_.assign(settings_.config(), peer.name);
  return std::make_unique<reduction::Reduction>(
      reduction::Options{.ring_bytes = memory,
                         .peer_ring_bytes = memory,
                         .epoch = random_number(),
                         .checksum = checksum,
                         .store = disk_.store(),
                         .site = site_id(tls.own_fingerprint()),
                         .twin_site = site_id(tls.peer_fingerprint()),
                         .rights = rights_of(settings_.config(), peer)});
}

void PeerLinks::apply_settings() {
  shared_.preshared = settings_.identity().preshared;
  shared_.total_rate.bits = settings_.config().link.total_rate_bits;
  if (listener_) listener_->set_max_handshakes(settings_.config().limits.handshakes);
}

void PeerLinks::apply_peers() {
  const config::Config& config = settings_.config();
  const auto configured = [&config](const std::string& name) {
    return std::ranges::find(config.peers, name, &config::Peer::name);
  };
  const auto gone = std::stable_partition(links_.begin(), links_.end(), [&](const auto& link) {
    return configured(link->peer().name) != config.peers.end();
  });
  for (auto link = gone; link != links_.end(); ++link) {
    (*link)->stop();
    histories_.forget((*link)->peer().name);
    removed_links_.push_back(std::move(*link));
  }
  links_.erase(gone, links_.end());
  for (auto& link : links_)
    if (const auto& peer = *configured(link->peer().name); peer != link->peer()) link->update(peer);
  // A change of groups concerns all of their peers, and the segments of a removed peer are no longer shared.
  for (auto& link : links_) link->dictionary().set_rights(rights_of(config, link->peer()));
  for (const config::Peer& peer : config.peers) {
    const auto has = [&](const auto& link) { return link->peer().name == peer.name; };
    if (std::ranges::any_of(links_, has)) continue;
    add(peer);
    links_.back()->start();
  }
  pool_.share_among(static_cast<std::uint32_t>(links_.size()));
  reserve_handshakes();
}

void PeerLinks::renew() {
  for (auto& link : links_) link->renew();
}

void PeerLinks::allow(const config::Features& features) {
  shared_.allowed = features;
  for (auto& link : links_) link->apply_features();
}

std::uint64_t PeerLinks::clear_memory() {
  std::uint64_t bytes = 0;
  for (auto& link : links_) bytes += link->dictionary().clear();
  return bytes;
}

void PeerLinks::report_to(control::Status& status) const {
  status.handshakes = shared_.handshakes;
  if (listener_) status.strangers_refused = listener_->refused();
  status.memory_short = pool_.used_up() || retained_.used_up();
  status.disk = disk_.counters();
  if (shared_.udp) status.unknown_datagrams = shared_.udp->counters().unknown;
  status.dictionary_bytes = disk_.memory_bytes();
  for (const auto& link : links_) {
    status.dictionary_bytes += link->dictionary().memory_bytes();
    status.links.push_back(link->status());
  }
}

}  // namespace longhaul
