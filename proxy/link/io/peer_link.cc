// SPDX-License-Identifier: Apache-2.0
// The session and its events. How connections come about is in peer_dial.cc.
#include "proxy/link/io/peer_link.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "proxy/link/io/processor_time.h"
#include "proxy/log/log.h"

namespace longhaul::link {
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// Some milliseconds, after which the flows of others have their turn.
constexpr std::uint64_t kWorkPerTurn = 4 << 20;
// Of a session that ends nobody waits for the rest.
constexpr std::uint64_t kWorkPerTurnOfEnd = 1 << 20;
constexpr std::size_t kStreamsAtOnce = 16;

}  // namespace

PeerLink::PeerLink(LinkShared& shared, const config::Peer& peer, OnOpened on_opened)
    : shared_(shared),
      peer_(peer),
      on_opened_(std::move(on_opened)),
      udp_(shared.io, peer.name, static_cast<CarrierOwner&>(*this)),
      session_timer_(shared.io),
      dial_timer_(shared.io),
      ended_timer_(shared.io),
      self_(std::make_shared<PeerLink*>(this)),
      gone_timer_(shared.io),
      state_since_(Clock::now()) {}

PeerLink::~PeerLink() { *self_ = nullptr; }

LinkState PeerLink::state() const {
  if (!session_ || ending_ || session_->is_over() || session_->preferred() == 0)
    return ever_up_ ? LinkState::down : LinkState::never_up;
  return session_->silent() || udp_.in_doubt() ? LinkState::silent : LinkState::up;
}

LinkStatus PeerLink::status() const {
  LinkStatus status{.peer = peer_.name, .state = state(), .last_error = last_error_};
  status.state_age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - state_since_);
  status.carriers_attached = carriers_attached_;
  status.bytes_sent = closed_bytes_sent_;
  status.bytes_received = closed_bytes_received_;
  for (const auto& carrier : carriers_) {
    status.carrier = "tcp";
    status.remote_address = carrier->remote();
    status.bytes_sent += carrier->bytes_sent();
    status.bytes_received += carrier->bytes_received();
    status.delivery_rate_bits = 8 * carrier->delivery_rate();
  }
  udp_.fill(status);
  status.bytes_sent += status.udp.bytes_sent;
  status.bytes_received += status.udp.bytes_received;
  if (udp_.carrying()) {
    status.carrier = "udp";
    status.remote_address = status.udp.remote_address;
    status.delivery_rate_bits = status.udp.delivery_rate_bits;
  }
  if (session_) {
    status.smoothed_rtt = std::chrono::duration_cast<std::chrono::microseconds>(session_->liveness().smoothed_rtt());
    status.streams = session_->live_streams();
    status.bytes_retained = session_->retained_bytes();
  }
  status.credit_granted = shared_.pool.granted_bytes();
  status.reduces = codec_ != nullptr;
  status.reduction = reduction_totals_.with(codec_ ? codec_->counters() : reduction::Counters{});
  return status;
}

void PeerLink::stop() {
  stopped_ = true;
  dial_timer_.cancel();
  ended_timer_.cancel();
  session_timer_.cancel();
  gone_timer_.cancel();
  for (auto& carrier : carriers_) carrier->close(CloseCode::shutting_down, "shutting down");
  carriers_.clear();
  end_session();
  count_for_total_rate();
}

void PeerLink::update(const config::Peer& peer) {
  peer_ = peer;
  if (session_ && !peer_.has_key(peer_key_)) {
    log::warn("link_revoked", {{"peer", peer_.name}, {"key", peer_key_}});
    end_session();
    drop_carriers(CloseCode::refused, "the key of this connection is not accepted any more");
  }
  last_error_.clear();  // what hindered the last attempt may be gone
  dial_timer_.cancel();
  choose_carrier();
}

void PeerLink::renew() {
  if (!carriers_.empty() && carrier_dialled_here_ && peer_.address) {
    wants_anew_ = true;
  } else if (!carriers_.empty()) {
    drop_carriers(CloseCode::busy, "dial again: the key of this side has changed");
    after_activity();
  }
  dial_timer_.cancel();
}

void PeerLink::drop_carriers(CloseCode code, const std::string& why) {
  for (auto& carrier : carriers_) {
    carrier->close(code, why);
    closed_bytes_sent_ += carrier->bytes_sent();
    closed_bytes_received_ += carrier->bytes_received();
    if (session_) session_->detach(carrier->id(), Clock::now());
  }
  carriers_.clear();
  choose_carrier();
}

void PeerLink::adopt(TlsConnection connection, const Token& session_id, Side side, const UdpTerms& terms,
                     const HelloFrame& theirs) {
  if (!session_) {
    // Both sides' histories begin with the session, and so agree.
    if (shared_.make_codec && theirs.blocks == kBlockVersion) {
      const auto secret =
          connection.tls().export_keying_material(kBlockExporterLabel, {}, BlockChecksum::kSecretBytes);
      if (!secret) return log_failure("no key for checksums: " + secret.error().message());
      codec_ = shared_.make_codec(peer_, connection.tls(),
                                  BlockChecksum(Bytes(*secret).first<BlockChecksum::kSecretBytes>()));
    }
    relief_ = {};
    SessionConfig config{.side = side,
                         .max_peer_streams = shared_.max_streams,
                         .allowed = shared_.allowed,
                         .work_per_turn = kWorkPerTurn};
    session_ = std::make_unique<Session>(config, shared_.pool, shared_.retained, codec_.get(), Clock::now());
    session_id_ = session_id;
    peer_modules_ = theirs.modules;
  } else {
    log::info("link_resumed", {{"peer", peer_.name}, {"streams", session_->live_streams()}});
  }
  boost::system::error_code no_address;
  const auto remote = connection.socket().remote_endpoint(no_address);
  if (!no_address && shared_.on_connected) shared_.on_connected(*this, remote.address());
  peer_key_ = connection.tls().peer_fingerprint();
  wants_anew_ = connection.tls().own_fingerprint() != shared_.tls.fingerprint();
  std::string congestion_control =
      set_link_options(connection.socket().native_handle(), shared_.config.congestion_control);
  begin_udp(connection, side, terms);
  CarrierId id = ++last_carrier_;
  Duration rtt = connection.handshake_time();
  auto carrier =
      std::make_unique<TcpCarrier>(id, std::move(connection), *session_, static_cast<CarrierOwner&>(*this),
                                   peer_.rate_bits, shared_.total_rate);
  session_->attach(id, Clock::now(), rtt);
  carrier->start();
  // The newest stays; what was in flight on an older one is sent again.
  for (auto& old : carriers_) {
    old->close(CloseCode::duplicate, "replaced by a newer connection");
    closed_bytes_sent_ += old->bytes_sent();
    closed_bytes_received_ += old->bytes_received();
    session_->detach(old->id(), Clock::now());
  }
  carriers_.clear();
  log::info("link_up", {{"peer", peer_.name},
                        {"carrier", "tcp"},
                        {"address", carrier->remote()},
                        {"dialled_by", side == Side::dialler ? "us" : "peer"},
                        {"handshake_ms", std::chrono::duration<double, std::milli>(rtt).count()},
                        {"congestion_control", congestion_control}});
  carriers_.push_back(std::move(carrier));
  ++carriers_attached_;
  ever_up_ = true;
  perhaps_gone_ = false;
  last_error_.clear();
  after_activity();
}

void PeerLink::begin_udp(TlsConnection& connection, Side side, const UdpTerms& terms) {
  if (!terms.endpoint) return;
  auto exported = connection.tls().export_keying_material(
      udp::kExporterLabel, udp::exporter_context(session_id_, terms.epoch), udp::kExportedBytes);
  if (!exported) return log_failure("no keys for UDP: " + exported.error().message());
  udp_.begin(*terms.endpoint,
             {.side = side,
              .keys = udp::keys_from_exporter(*exported),
              .cipher = terms.cipher,
              .peer = terms.peer,
              .new_carrier = [this] { return ++last_carrier_; }},
             *session_);
}

void PeerLink::choose_carrier() {
  count_for_total_rate();
  if (!session_ || stopped_) return;
  const CarrierId before = session_->preferred();
  udp_.choose({.features = config::meet(shared_.allowed, session_->peer_allowed()),
               .tcp = carriers_.empty() ? 0 : carriers_.back()->id(),
               .rate_bits = peer_.rate_bits,
               .most_bits = shared_.total_rate.share()},
              Clock::now());
  if (session_->preferred() == before) return;
  kick();
  go_on_later();
}

void PeerLink::count_for_total_rate() {
  bool carries = session_ && session_->preferred() != 0;
  if (carries == counted_) return;
  counted_ = carries;
  shared_.total_rate.links += carries ? 1 : -1;
}

void PeerLink::on_codec_ready() {
  if (session_ && codec_) go_on();
}

void PeerLink::go_on() {
  session_->begin_turn();
  if (auto done = session_->go_on(Clock::now()); !done) log_failure(done.error().message());
  after_activity();
  kick();
}

// More came than one turn's work: all that waits in the loop goes before the rest.
void PeerLink::go_on_later() {
  if (!session_ || !session_->has_work_left() || std::exchange(goes_on_, true)) return;
  asio::post(shared_.io, [self = self_] {
    if (!*self) return;
    (*self)->goes_on_ = false;
    if ((*self)->session_) (*self)->go_on();
  });
}

void PeerLink::on_second() {
  if (!codec_) return;
  const std::uint64_t blocks = codec_->counters().encoder.blocks;
  if (blocks != std::exchange(blocks_at_last_second_, blocks)) return;
  codec_->on_quiet();
  if (codec_->has_message()) kick();
  work_for_codec();
}

// A bounded piece at a time, and others are served in between.
void PeerLink::work_for_codec() {
  if (!codec_ || !codec_->has_work() || std::exchange(codec_works_, true)) return;
  asio::post(shared_.io, [self = self_] {
    if (!*self) return;
    PeerLink& link = **self;
    link.codec_works_ = false;
    if (!link.codec_) return;
    link.codec_->work();
    if (link.codec_->has_message()) link.kick();
    link.work_for_codec();
  });
}

void PeerLink::finish() {
  if (!codec_ || state() != LinkState::up) return;
  codec_->finish();
  kick();
  work_for_codec();
}

bool PeerLink::finished() const {
  return !codec_ || state() != LinkState::up || (codec_->finished() && session_->told_all());
}

std::uint64_t PeerLink::clear_dictionaries() {
  if (!codec_) return 0;
  const reduction::Counters counters = codec_->counters();
  codec_->clear();
  kick();
  return counters.encoder.ring_filled_bytes + counters.decoder.ring_filled_bytes;
}

void PeerLink::set_rights(reduction::SegmentRights rights) {
  if (!codec_) return;
  codec_->set_rights(std::move(rights));
  kick();
}

std::optional<std::uint64_t> PeerLink::cleared_by_peer() const {
  return codec_ ? codec_->cleared_by_twin() : std::optional<std::uint64_t>(0);
}

// What the loop does besides counts, and so does the time in which others had the processor: it is the same
// one that compressing waits for.
void PeerLink::relieve_processor() {
  const TimePoint now = Clock::now();
  if (!codec_ || !relief_.due(now)) return;
  if (relief_.update(now, processor_wanted(), codec_->counters().encoder.compressed_bytes))
    codec_->set_relief(relief_.steps());
}

void PeerLink::apply_features() {
  if (session_) session_->allow(shared_.allowed);
  choose_carrier();
  kick();
}

void PeerLink::on_carrier_closed(CarrierId id, const std::string& why, EndedBy by) {
  auto closed =
      std::find_if(carriers_.begin(), carriers_.end(), [&](const auto& c) { return c->id() == id; });
  if (closed == carriers_.end()) return;
  closed_bytes_sent_ += (*closed)->bytes_sent();
  closed_bytes_received_ += (*closed)->bytes_received();
  carriers_.erase(closed);
  last_error_ = why;
  if (session_) session_->detach(id, Clock::now());
  choose_carrier();
  bool carries = session_ && session_->preferred() != 0;
  log::warn(carries ? "link_tcp_lost" : "link_down", {{"peer", peer_.name}, {"reason", why}});
  perhaps_gone_ = by == EndedBy::peer && carriers_.empty();
  after_activity();
  if (perhaps_gone_) watch_for_end();
  if (perhaps_gone_ && shared_.on_peer_doubted) shared_.on_peer_doubted(*this);
  dial_timer_.cancel();
}

// The kernel of a process that dies ends its connections, and nothing comes over UDP any more. If only the
// connection was cut, by somebody between, UDP is heard, or a new connection made, within this time.
void PeerLink::watch_for_end() {
  const Duration round_trip = session_ ? session_->liveness().smoothed_rtt() : Duration{};
  gone_timer_.expires_after(2s + 4 * round_trip);
  gone_timer_.async_wait([self = self_](boost::system::error_code error) {
    if (error || !*self || !(*self)->perhaps_gone_) return;
    PeerLink& link = **self;
    link.perhaps_gone_ = false;
    log::info("peer_stopped", {{"peer", link.peer_.name}});
    if (link.shared_.on_peer_gone) link.shared_.on_peer_gone(link);
  });
}

void PeerLink::end_session() {
  if (!session_ || std::exchange(ending_, true)) return;
  note_state();
  session_->abandon(Clock::now());
  udp_.end();
  ended_timer_.expires_at(TimePoint::max());
  end_more_later();
}

void PeerLink::end_more_later() {
  asio::post(shared_.io, [self = self_] {
    if (*self) (*self)->end_more();
  });
}

void PeerLink::end_more() {
  if (shared_.decides_anew && shared_.decides_anew(*this)) return end_more_later();
  WorkBudget turn(kWorkPerTurnOfEnd);
  WorkBudget::Scope working(turn);
  bool left = true;
  while (left && !turn.used_up()) {
    left = session_->end_streams(kStreamsAtOnce);
    deliver_events();
  }
  // A flow that was told has let go of its stream. Should one not have been, it is told now.
  while (!left && !users_.empty() && !turn.used_up()) {
    count_work(kWorkPerTurnOfEnd / kStreamsAtOnce);
    users_.extract(users_.begin()).mapped()->on_stream_event(EventKind::reset);
  }
  if (left || !users_.empty()) return end_more_later();
  session_.reset();
  if (codec_) reduction_totals_.add_ended(codec_->counters());
  codec_.reset();
  ending_ = false;
  ended_timer_.cancel();
}

bool PeerLink::peer_has_module(std::string_view name, std::uint64_t version) const {
  return std::ranges::any_of(peer_modules_,
                             [&](const ModuleName& m) { return m.name == name && m.version == version; });
}

void PeerLink::release(StreamId stream) {
  users_.erase(stream);
  if (session_) session_->release(stream);
  kick();
}

void PeerLink::kick() {
  if (!carriers_.empty()) carriers_.back()->kick();
  udp_.kick();
}

void PeerLink::after_activity() {
  choose_carrier();
  relieve_processor();
  deliver_events();
  work_for_codec();
  arm_timer();
  go_on_later();
}

void PeerLink::deliver_events() {
  // A flow that is told may write, open or release, which makes further events: those are taken in the same
  // round.
  if (std::exchange(delivering_, true)) return;
  bool expired = false;
  while (session_) {
    auto event = session_->poll_event();
    if (!event) break;
    switch (event->kind) {
      case Event::Kind::stream: {
        if (event->stream_event == EventKind::opened) {
          if (Stream* stream = session_->find(event->stream)) on_opened_(*this, *stream);
          break;
        }
        auto user = users_.find(event->stream);
        if (user != users_.end()) user->second->on_stream_event(event->stream_event);
        break;
      }
      case Event::Kind::path_silent:
        log::warn("link_silent", {{"peer", peer_.name}});
        dial_timer_.cancel();
        break;
      case Event::Kind::path_alive:
        log::info("link_alive", {{"peer", peer_.name}});
        udp_.probe_now(Clock::now());
        break;
      case Event::Kind::peer_allows:
        if (shared_.on_peer_allows) shared_.on_peer_allows(*this);
        break;
      case Event::Kind::peer_closing: {
        const CloseFrame& close = session_->close_reason();
        log::info("link_closed_by_peer", {{"peer", peer_.name}, {"reason", close.text}});
        if (close.code == CloseCode::shutting_down) expired = true;
        break;
      }
      case Event::Kind::expired:
        expired = true;
        break;
    }
  }
  delivering_ = false;
  count_for_total_rate();
  note_state();
  if (expired && session_ && !ending_) {
    log::warn("session_over", {{"peer", peer_.name}});
    for (auto& carrier : carriers_) {
      closed_bytes_sent_ += carrier->bytes_sent();
      closed_bytes_received_ += carrier->bytes_received();
      session_->detach(carrier->id(), Clock::now());
    }
    carriers_.clear();
    end_session();
    dial_timer_.cancel();
  }
}

void PeerLink::note_state() {
  const LinkState now = state();
  if (now == last_state_) return;
  const bool was_up = std::exchange(last_state_, now) == LinkState::up;
  state_since_ = Clock::now();
  if (now == LinkState::up) perhaps_gone_ = false;
  if (was_up && !stopped_ && shared_.on_link_lost) shared_.on_link_lost(*this);
}

void PeerLink::arm_timer() {
  if (!session_ || stopped_) return;
  auto next = session_->next_timeout();
  // A timer that fires too early finds nothing to do and is set anew: cheaper than moving it for every
  // packet.
  if (!next || (timer_at_ && *timer_at_ <= *next)) return;
  timer_at_ = next;
  session_timer_.expires_at(*next);
  session_timer_.async_wait([self = self_](boost::system::error_code error) {
    if (error || !*self) return;
    PeerLink& link = **self;
    link.timer_at_.reset();
    if (!link.session_) return;
    link.session_->on_timeout(Clock::now());
    link.deliver_events();
    link.kick();
    link.arm_timer();
    link.go_on_later();
  });
}

}  // namespace longhaul::link
