// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/peer_link.h"

#include <algorithm>

#include "proxy/link/io/agreed_keys.h"
#include "proxy/log/log.h"

namespace longhaul::link {
namespace asio = boost::asio;

namespace {

// Some milliseconds, after which other sessions take their turns.
constexpr std::uint64_t kWorkPerTurn = 4 << 20;

}  // namespace

PeerLink::PeerLink(LinkShared& shared, const config::Peer& peer, OnOpened on_opened)
    : shared_(shared),
      peer_(peer),
      on_opened_(std::move(on_opened)),
      host_(shared.io, *this),
      udp_(shared.io, peer.name, static_cast<CarrierOwner&>(*this)),
      dial_(shared, peer_, udp_, *this),
      doubt_(shared.io),
      state_since_(Clock::now()),
      self_(std::make_shared<PeerLink*>(this)) {}

PeerLink::~PeerLink() { *self_ = nullptr; }

LinkState PeerLink::state() const {
  const Session* session = host_.session();
  if (!host_.resumable() || session->is_over() || session->preferred() == kNoCarrier)
    return ever_up_ ? LinkState::down : LinkState::never_up;
  return session->silent() || udp_.in_doubt() ? LinkState::silent : LinkState::up;
}

LinkStatus PeerLink::status() const {
  LinkStatus status{.peer = peer_.name, .state = state(), .last_error = dial_.last_error()};
  status.state_age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - state_since_);
  carriers_.fill(status);
  udp_.fill(status);
  status.bytes_sent += status.udp.bytes_sent;
  status.bytes_received += status.udp.bytes_received;
  if (udp_.carrying()) {
    status.carrier = "udp";
    status.remote_address = status.udp.remote_address;
    status.delivery_rate_bits = status.udp.delivery_rate_bits;
  }
  status.credit_granted = shared_.pool.granted_bytes();
  host_.fill(status);
  return status;
}

void PeerLink::stop() {
  stopped_ = true;
  dial_.stop();
  host_.stop();
  doubt_.stop();
  carriers_.close_all(CloseCode::shutting_down, "shutting down", nullptr);
  end_session();
  count_for_total_rate();
}

void PeerLink::update(const config::Peer& peer) {
  peer_ = peer;
  if (host_.session() && !peer_.has_key(peer_key_)) {
    log::warn("link_revoked", {{"peer", peer_.name}, {"key", peer_key_}});
    end_session();
    close_carriers(CloseCode::refused, "the key of this connection is not accepted any more");
    choose_carrier();
  }
  dial_.set_last_error({});  // the obstacle to the last attempt may be gone
  dial_.wake();
  choose_carrier();
}

void PeerLink::renew() {
  if (!carriers_.empty() && carrier_dialled_here_ && peer_.address) {
    wants_new_key_ = true;
  } else if (!carriers_.empty()) {
    close_carriers(CloseCode::busy, "dial again: the key of this side has changed");
    after_activity();
  }
  dial_.wake();
}

// -----------------------------------------------------------------------------------------------------
// connections

bool PeerLink::wants_connection() const {
  return carriers_.empty() || wants_new_key_ || (host_.session() && host_.session()->silent());
}

bool PeerLink::has_own_connection() const {
  return !carriers_.empty() && carrier_dialled_here_ && !host_.session()->silent();
}

asio::awaitable<bool> PeerLink::may_adopt(std::string key, Token session, bool resumes) {
  auto self = self_;
  for (;;) {
    if (host_.session() && host_.id() != session) {
      if (resumes) co_return false;
      end_session();
      close_carriers(CloseCode::duplicate, "replaced by a newer connection");
      choose_carrier();
    }
    if (!host_.ending()) co_return (host_.session() || !resumes) && peer_.has_key(key);
    co_await host_.wait_for_end();
    if (!*self || stopped_) co_return false;
  }
}

// False: it cannot begin.
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
    log::info("link_resumed", {{"peer", peer_.name}, {"streams", session().live_streams()}});
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
  begin_udp(agreed);
  const CarrierId id = ++last_carrier_;
  const Duration rtt = connection.handshake_time();
  auto carrier =
      std::make_unique<TcpCarrier>(id, std::move(connection), session(), static_cast<CarrierOwner&>(*this),
                                   peer_.rate_bits, shared_.total_rate);
  session().attach(id, Clock::now(), rtt);
  carrier->start();
  // The newest stays; data in flight on older ones is sent again.
  close_carriers(CloseCode::duplicate, "replaced by a newer connection");
  log::info("link_up", {{"peer", peer_.name},
                        {"carrier", "tcp"},
                        {"address", carrier->remote()},
                        {"dialled_by", agreed.side == Side::dialler ? "us" : "peer"},
                        {"handshake_ms", std::chrono::duration<double, std::milli>(rtt).count()},
                        {"congestion_control", congestion_control}});
  carriers_.add(std::move(carrier));
  ever_up_ = true;
  doubt_.set(false);
  dial_.set_last_error({});
  after_activity();
}

void PeerLink::begin_udp(Agreed& agreed) {
  if (!agreed.udp.endpoint) return;
  const auto keys = packet_keys(shared_, agreed, host_.id());
  if (!keys) return dial_.log_failure("no keys for UDP: " + keys.error().message());
  udp_.begin(*agreed.udp.endpoint,
             {.side = agreed.side,
              .keys = *keys,
              .cipher = agreed.udp.cipher,
              .peer = agreed.udp.peer,
              .new_carrier = [this] { return ++last_carrier_; }},
             session());
}

void PeerLink::on_carrier_closed(CarrierId id, const std::string& why, EndedBy by) {
  if (!carriers_.forget(id, host_.session())) return;
  dial_.set_last_error(why);
  choose_carrier();
  const bool carries = host_.session() && session().preferred() != kNoCarrier;
  log::warn(carries ? "link_tcp_lost" : "link_down", {{"peer", peer_.name}, {"reason", why}});
  doubt_.set(by == EndedBy::peer && carriers_.empty());
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
  count_for_total_rate();
  if (!host_.session() || stopped_) return;
  const CarrierId before = session().preferred();
  udp_.choose({.features = config::meet(shared_.allowed, session().incoming().peer_allowed()),
               .tcp = carriers_.newest(),
               .rate_bits = peer_.rate_bits,
               .most_bits = shared_.total_rate.share()},
              Clock::now());
  if (session().preferred() == before) return;
  kick();
  host_.go_on_later();
}

void PeerLink::count_for_total_rate() {
  const bool carries = host_.session() && session().preferred() != kNoCarrier;
  if (carries == counted_) return;
  counted_ = carries;
  shared_.total_rate.links += carries ? 1 : -1;
}

// ----------------------------------------------------------------------------------------------------- the
// session

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
  count_for_total_rate();
  note_state();
  if (delivered != SessionHost::Delivered::expired) return;
  log::warn("session_over", {{"peer", peer_.name}});
  carriers_.forget_all(host_.session());
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
      return udp_.probe_now(Clock::now());
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
  udp_.end();
}

void PeerLink::note_state() {
  const LinkState now = state();
  if (now == last_state_) return;
  const bool was_up = std::exchange(last_state_, now) == LinkState::up;
  state_since_ = Clock::now();
  if (now == LinkState::up) doubt_.set(false);
  if (was_up && !stopped_ && shared_.on_link_lost) shared_.on_link_lost(*this);
}

void PeerLink::release(StreamId stream) {
  host_.release(stream);
  kick();
}

void PeerLink::kick() {
  carriers_.kick();
  udp_.kick();
}

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
