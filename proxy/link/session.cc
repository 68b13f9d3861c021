// SPDX-License-Identifier: Apache-2.0
// The session's life: carriers come and go, time passes, and it ends.
#include "proxy/link/session.h"

#include <cassert>

namespace longhaul::link {

using namespace std::chrono_literals;

namespace {
constexpr Duration kMemoryRounds = 500ms;
// Cost of a stream that ends with its session: its flow, its socket and its place in the tables end with it.
constexpr std::uint64_t kWorkPerEnd = 20'000;
// Cost of a stream in a round: looking it up, and sending again what a lost carrier had.
constexpr std::uint64_t kWorkPerVisit = 500;
}  // namespace

Session::Session(const SessionConfig& config, CreditPool& pool, RetainedBudget& retained, BlockCodec* codec,
                 TimePoint now)
    : config_(config),
      context_{.owner = *this,
               .pool = pool,
               .retained = RetainedShare(retained),
               .codec = codec,
               .work = WorkBudget(config.work_per_turn),
               .keys = FeatureKeys(config.allowed.modules.table(), config.peer_features),
               .now = now},
      open_credit_(pool),
      events_(streams_),
      due_(context_, streams_, control_, open_credit_, liveness_),
      lifetimes_(context_, streams_, open_credit_, due_, config.side, config.max_peer_streams),
      incoming_(context_, streams_, lifetimes_, control_, open_credit_, due_, liveness_, events_),
      control_(context_, incoming_.reader()),
      outgoing_(context_, streams_, control_, due_, carriers_),
      next_memory_round_(now + kMemoryRounds) {
  allow(config.allowed);
  lifetimes_.grant_open_credit();
}

Session::~Session() = default;

// -------------------------------------------------------------------------------------------- carriers

void Session::attach(CarrierId carrier, TimePoint now, Duration rtt, bool may_send) {
  context_.now = now;
  if (over_) return;
  carriers_.add(carrier, may_send);
  if (!may_send) return;
  send_on(*carriers_.find(carrier), rtt);
  hear(now);  // the peer's part of the handshake
}

void Session::prefer(CarrierId carrier, TimePoint now) {
  context_.now = now;
  auto* found = carriers_.find(carrier);
  if (over_ || carrier == preferred() || !found) return;
  send_on(*found, liveness_.smoothed_rtt());
}

void Session::send_on(SessionCarriers::Carrier& carrier, Duration rtt) {
  carriers_.prefer(carrier);
  orphaned_since_.reset();
  liveness_.start(context_.now, rtt);
  say_everything_again();
}

// Nothing else ends silence: that data is sent another way now does not mean that it arrives.
void Session::hear(TimePoint now) {
  liveness_.on_heard(now);
  if (std::exchange(silent_, false)) events_.tell(Event::Kind::path_alive);
}

void Session::detach(CarrierId carrier, TimePoint now) {
  context_.now = now;
  if (!carriers_.find(carrier)) return;
  const bool sent_here = preferred() == carrier;
  carriers_.remove(carrier);
  if (over_) return;
  control_.sending().on_carrier_lost(carrier);
  carrier_lost_ = true;
  if (due_.repeat_last_acks()) due_.acks_by(now);
  if (!has_carrier()) {
    if (!orphaned_since_) orphaned_since_ = now;
    liveness_.stop();
  }
  if (has_carrier() && sent_here) return send_on(*carriers_.find(preferred()), liveness_.smoothed_rtt());
  say_everything_again();
}

// Control frames are not retained: those sent on a lost carrier may not have arrived.
void Session::say_everything_again() {
  due_.open_credit();
  due_.control_ack();
  due_.acks_by(context_.now);
  streams_.begin_round(StreamTable::Round::carriers);
  WorkBudget::Scope working(context_.work);
  visit_streams();
}

// As many as the turn's work allows.
void Session::visit_streams() {
  using Round = StreamTable::Round;
  if (!streams_.in_any_round()) return;
  const std::vector<CarrierId> carriers = carriers_.ids();
  while (!context_.work.used_up()) {
    const auto visit = streams_.next_visit();
    if (!visit) break;
    count_work(kWorkPerVisit);
    Stream& stream = visit->stream;
    if (visit->is_for(Round::carriers)) {
      if (carrier_lost_) stream.writer().on_carriers_left(carriers);
      if (stream.reader().wire_received() > StreamOffset()) {
        due_.ack(stream.entry());
        due_.acks_by(context_.now);
      }
      if (auto* credit = stream.reader().credit(); credit && credit->generation() > 0)
        due_.credit(stream.entry());
      if (stream.entry().reset_pending) due_.reset(stream.entry());
    }
    if (visit->is_for(Round::memory)) {
      // Its flow may have waited for memory that other streams held.
      stream.writer().tell_if_writable();
      auto* credit = stream.reader().credit();
      if (credit && context_.pool.under_pressure() && credit->reclaim(context_.now))
        due_.credit(stream.entry());
    }
  }
  if (!streams_.in_round(Round::carriers)) carrier_lost_ = false;
}

// ----------------------------------------------------------------------------------------------------- time

std::optional<TimePoint> Session::next_timeout() const {
  if (over_) return std::nullopt;
  if (!has_carrier())
    return orphaned_since_ ? std::optional(*orphaned_since_ + config_.orphan_patience) : std::nullopt;
  std::optional<TimePoint> next = liveness_.next_timeout(busy(), silent_);
  auto sooner = [&](std::optional<TimePoint> time) {
    if (time) next = next ? std::min(*next, *time) : time;
  };
  sooner(due_.ack_timer().next_timeout());
  sooner(control_.codec_timeout());
  if (busy() && (context_.pool.under_pressure() || context_.retained.bytes_of_all() > 0))
    sooner(next_memory_round_);
  return next;
}

void Session::on_timeout(TimePoint now) {
  context_.now = now;
  if (over_) return;
  if (!has_carrier()) {
    if (orphaned_since_ && now >= *orphaned_since_ + config_.orphan_patience) abandon(now);
    return;
  }
  due_.ack_timer().on_timeout(now);
  if (const auto codec_at = control_.codec_timeout(); codec_at && now >= *codec_at) control_.poll_codec();
  liveness_.on_timeout(now, busy());
  if (!silent_ && liveness_.silent(now, busy())) {
    silent_ = true;
    events_.tell(Event::Kind::path_silent);
  }
  if (now >= next_memory_round_) {
    next_memory_round_ = now + kMemoryRounds;
    lifetimes_.grant_open_credit();
    streams_.begin_round(StreamTable::Round::memory);
    WorkBudget::Scope working(context_.work);
    visit_streams();
  }
}

Session::State Session::state() const {
  return {.is_over = over_,
          .is_silent = silent_,
          .has_work_left = !over_ && (incoming_.has_work_left() || streams_.in_any_round()),
          .live_streams = streams_.size(),
          .retained_bytes = context_.retained.bytes()};
}

Result<void> Session::go_on(TimePoint now) {
  context_.now = now;
  if (over_) return {};
  WorkBudget::Scope working(context_.work);
  visit_streams();
  auto done = incoming_.go_on();
  if (!done) abandon(now);
  return done;
}

void Session::abandon(TimePoint now) {
  context_.now = now;
  if (over_) return;
  over_ = true;
  lifetimes_.session_is_over();
  outgoing_.stop();
  streams_.stop_rounds();
  streams_.begin_round(StreamTable::Round::end);
  events_.tell(Event::Kind::expired);
}

bool Session::end_streams(std::size_t most) {
  assert(over_);
  for (; most > 0; --most) {
    const auto visit = streams_.next_visit();
    if (!visit) break;
    count_work(kWorkPerEnd);
    Stream& stream = visit->stream;
    stream.on_reset(ResetCode::session_lost);
    // No flow will release it.
    if (stream.entry().released || !stream.begun()) streams_.erase(stream.id());
  }
  return streams_.in_any_round();
}

Result<void> Session::receive(CarrierId id, Bytes bytes, TimePoint now) {
  context_.now = now;
  auto* carrier = carriers_.find(id);
  if (!carrier || over_) return {};
  WorkBudget::Scope working(context_.work);
  hear(now);
  auto taken = incoming_.feed(carrier->assembler, bytes);
  if (!taken) abandon(now);
  return taken;
}

std::optional<Event> Session::poll_event() {
  for (;;) {
    auto event = events_.poll();
    const bool opens =
        event && event->kind == Event::Kind::stream && event->stream_event == EventKind::opened;
    if (!over_ || !opens) return event;
    release(event->stream);  // no new flow begins
  }
}

// --------------------------------------------------------------------------------------------- streams

Stream& Session::open(OpenRequest request, TimePoint now) {
  context_.now = now;
  return lifetimes_.open(std::move(request));
}

// The most that an honest peer can have sent without any stream reading it: its granted credit that this side
// has not taken yet, plus some for heads, and for streams whose OPEN is under way.
std::uint64_t Session::waiting_allowance() const {
  constexpr std::uint64_t kLeastSlack = 256 * 1024;
  const SessionCredit& credit = context_.credit;
  const CreditPool& pool = context_.pool;
  const std::uint64_t granted = credit.granted + open_credit_.ahead() + pool.floor_bytes() * credit.streams;
  const std::uint64_t slack = std::max(kLeastSlack, pool.cap_bytes() / 16);
  return std::min(pool.cap_bytes(), granted - std::min(granted, credit.unread) + slack);
}

// -------------------------------------------------------------------------------------------- features

void Session::allow(const config::Features& features) {
  config_.allowed = features;
  Buffer body;
  write_features(features, body);
  control_.write(RecordType::allowed, body);
}

void Session::change_features(StreamId id, const config::Features& features) {
  Stream* stream = find(id);
  if (!stream || stream->request().features == features) return;
  stream->use_features(features);
  Buffer body;
  ByteWriter(body).varint(id.number());
  write_features(features, body);
  control_.write(RecordType::features, body);
}

}  // namespace longhaul::link
