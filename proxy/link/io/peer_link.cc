// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/peer_link.h"

#include <algorithm>

#include "proxy/link/io/agreed_keys.h"
#include "proxy/log/log.h"

namespace longhaul::link {
namespace asio = boost::asio;

namespace {

// A few milliseconds, after which other sessions have their turns.
constexpr std::uint64_t kWorkPerTurn = 4 << 20;

}  // namespace

PeerLink::PeerLink(LinkShared& shared, const config::Peer& peer, OnOpened on_opened)
    : shared_(shared),
      peer_(peer),
      on_opened_(std::move(on_opened)),
      host_(shared.io, *this),
      carriers_(shared, peer_, host_, *this),
      dial_(shared, peer_, carriers_.udp(), *this),
      doubt_(shared.io),
      states_(Clock::now()),
      self_(std::make_shared<PeerLink*>(this)) {}

PeerLink::~PeerLink() { *self_ = nullptr; }

LinkState PeerLink::state() const {
  const Session* session = host_.session();
  if (!host_.resumable() || session->state().is_over || session->preferred() == kNoCarrier)
    return states_.without_session();
  return session->state().is_silent || carriers_.udp().in_doubt() ? LinkState::silent : LinkState::up;
}

LinkStatus PeerLink::status() const {
  LinkStatus status{.peer = peer_.name, .state = state(), .last_error = dial_.last_error()};
  status.state_age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - states_.since());
  carriers_.fill(status);
  status.credit_granted = shared_.pool.granted_bytes();
  host_.fill(status);
  if (host_.session()) status.unlike_modules = unlike_modules();
  return status;
}

// Only names that this side has, too: otherwise the peer could put any text on the operator's screen.
std::vector<UnlikeModule> PeerLink::unlike_modules() const {
  std::vector<UnlikeModule> unlike;
  for (const ModuleName& ours : shared_.modules) {
    if (peer_has_module(ours.name, ours.version)) continue;
    const auto theirs = std::ranges::find(peer_modules_, ours.name, &ModuleName::name);
    unlike.push_back({ours.name, ours.version, theirs == peer_modules_.end() ? 0 : theirs->version});
  }
  return unlike;
}

void PeerLink::stop() {
  stopped_ = true;
  dial_.stop();
  host_.stop();
  doubt_.stop();
  carriers_.stop("shutting down");
  end_session();
  carriers_.count_for_total_rate();
}

void PeerLink::update(const config::Peer& peer) {
  peer_ = peer;
  if (host_.session() && !peer_.has_key(peer_key_)) {
    log::warn("link_revoked", {{"peer", peer_.name}, {"key", peer_key_}});
    end_session();
    carriers_.close_connections(CloseCode::refused, "the key of this connection is not accepted any more");
    choose_carrier();
  }
  dial_.set_last_error({});  // the cause of the last failure may be gone
  dial_.wake();
  choose_carrier();
}

void PeerLink::renew() {
  if (carriers_.connected() && carrier_dialled_here_ && peer_.address) {
    wants_new_key_ = true;
  } else if (carriers_.connected()) {
    carriers_.close_connections(CloseCode::busy, "dial again: the key of this side has changed");
    after_activity();
  }
  dial_.wake();
}

// ---- connections

bool PeerLink::wants_connection() const {
  return !carriers_.connected() || wants_new_key_ || (host_.session() && host_.session()->state().is_silent);
}

bool PeerLink::has_own_connection() const {
  return carriers_.connected() && carrier_dialled_here_ && !host_.session()->state().is_silent;
}

asio::awaitable<bool> PeerLink::may_adopt(std::string key, Token session, bool resumes) {
  auto self = self_;
  for (;;) {
    if (host_.session() && host_.id() != session) {
      if (resumes) co_return false;
      end_session();
      carriers_.close_connections(CloseCode::duplicate, "replaced by a newer connection");
      choose_carrier();
    }
    if (!host_.ending()) co_return (host_.session() || !resumes) && peer_.has_key(key);
    co_await host_.wait_for_end();
    if (!*self || stopped_) co_return false;
  }
}

// Returns false if the session cannot begin.
bool PeerLink::begin_session(Agreed& agreed) {
  auto codec = make_codec(shared_, peer_, agreed);
  if (!codec) return dial_.log_failure("no key for checksums: " + codec.error().message()), false;
  host_.begin({.side = agreed.side,
               .max_peer_streams = shared_.max_streams,
               .allowed = shared_.allowed,
               .peer_features = agreed.theirs.features,
               .work_per_turn = kWorkPerTurn},
              shared_.pool, shared_.retained, *std::move(codec), agreed.session);
  peer_modules_ = agreed.theirs.modules;
  return true;
}

void PeerLink::adopt(Agreed agreed) {
  carrier_dialled_here_ = agreed.side == Side::dialler;
  if (host_.session()) {
    log::info("link_resumed", {{"peer", peer_.name}, {"streams", session().state().live_streams}});
  } else if (!begin_session(agreed)) {
    return;
  }
  TlsConnection& connection = agreed.connection;
  boost::system::error_code no_address;
  const auto remote = connection.socket().remote_endpoint(no_address);
  if (!no_address && shared_.on_connected) shared_.on_connected(*this, remote.address());
  peer_key_ = connection.tls().peer_fingerprint();
  wants_new_key_ = connection.tls().own_fingerprint() != shared_.tls.fingerprint();
  const std::string congestion_control =
      set_link_options(connection.socket().native_handle(), shared_.config.congestion_control);
  if (const auto begun = carriers_.begin_udp(agreed); !begun)
    dial_.log_failure("no keys for UDP: " + begun.error().message());
  const auto attached = carriers_.attach(std::move(connection));
  const std::chrono::duration<double, std::milli> handshake = attached.handshake_time;
  log::info("link_up", {{"peer", peer_.name},
                        {"carrier", "tcp"},
                        {"address", attached.remote},
                        {"dialled_by", carrier_dialled_here_ ? "us" : "peer"},
                        {"handshake_ms", handshake.count()},
                        {"congestion_control", congestion_control}});
  states_.on_connected();
  doubt_.set(false);
  dial_.set_last_error({});
  after_activity();
}

void PeerLink::on_carrier_closed(CarrierId id, const std::string& why, EndedBy by) {
  if (!carriers_.forget(id)) return;
  dial_.set_last_error(why);
  choose_carrier();
  log::warn(carriers_.sends() ? "link_tcp_lost" : "link_down", {{"peer", peer_.name}, {"reason", why}});
  doubt_.set(by == EndedBy::peer && !carriers_.connected());
  after_activity();
  if (perhaps_gone()) {
    doubt_.watch(host_.session() ? session().liveness().smoothed_rtt() : Duration{}, [this] {
      log::info("peer_stopped", {{"peer", peer_.name}});
      if (shared_.on_peer_gone) shared_.on_peer_gone(*this);
    });
    if (shared_.on_peer_doubted) shared_.on_peer_doubted(*this);
  }
  dial_.wake();
}

void PeerLink::choose_carrier() {
  if (!carriers_.choose()) return;
  kick();
  host_.go_on_later();
}

// ---- the session

void PeerLink::after_activity() {
  choose_carrier();
  host_.codec().relieve_processor();
  deliver_events();
  host_.codec().work();
  host_.arm_timer();
  host_.go_on_later();
}

void PeerLink::deliver_events() {
  const auto delivered = host_.deliver_events();
  if (delivered == SessionHost::Delivered::nested) return;
  carriers_.count_for_total_rate();
  note_state();
  if (delivered != SessionHost::Delivered::expired) return;
  log::warn("session_over", {{"peer", peer_.name}});
  carriers_.forget_connections();
  end_session();
  dial_.wake();
}

void PeerLink::on_session_event(const Event& event) {
  switch (event.kind) {
    case Event::Kind::path_silent:
      log::warn("link_silent", {{"peer", peer_.name}});
      return dial_.wake();
    case Event::Kind::path_alive:
      log::info("link_alive", {{"peer", peer_.name}});
      return carriers_.udp().probe_now(Clock::now());
    case Event::Kind::peer_allows:
      if (shared_.on_peer_allows) shared_.on_peer_allows(*this);
      return;
    case Event::Kind::peer_closing:
      log::info("link_closed_by_peer",
                {{"peer", peer_.name}, {"reason", session().incoming().close_reason().text}});
      return;
    case Event::Kind::stream:
    case Event::Kind::expired:
      return;
  }
}

void PeerLink::end_session() {
  if (!host_.end()) return;
  note_state();
  carriers_.udp().end();
}

void PeerLink::note_state() {
  const LinkState now = state();
  const auto [changed, was_up] = states_.note(now, Clock::now());
  if (!changed) return;
  if (now == LinkState::up) doubt_.set(false);
  if (was_up && !stopped_ && shared_.on_link_lost) shared_.on_link_lost(*this);
}

void PeerLink::release(StreamId stream) {
  host_.release(stream);
  kick();
}

void PeerLink::kick() { carriers_.kick(); }

void PeerLink::finish() {
  if (state() == LinkState::up) host_.codec().finish();
}

bool PeerLink::finished() const {
  return !host_.codec().codec() || state() != LinkState::up ||
         (host_.codec().finished() && host_.session()->outgoing().told_all());
}

void PeerLink::apply_features() {
  if (host_.session()) session().allow(shared_.allowed);
  choose_carrier();
  kick();
}

bool PeerLink::peer_has_module(std::string_view name, std::uint64_t version) const {
  return std::ranges::any_of(peer_modules_,
                             [&](const ModuleName& m) { return m.name == name && m.version == version; });
}

}  // namespace longhaul::link
