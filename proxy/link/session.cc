// SPDX-License-Identifier: Apache-2.0
// The session's life: carriers come and go, time passes, streams are opened and forgotten. What frames say is
// in session_receive.cc, what is sent next in session_transmit.cc.
#include "proxy/link/session.h"

#include <cassert>

namespace longhaul::link {

using namespace std::chrono_literals;

namespace {
constexpr Duration kReclaimInterval = 500ms;
// Of a stream that ends with its session: its flow, its socket and its place in the tables go with it.
constexpr std::uint64_t kWorkPerEnd = 20'000;
}  // namespace

Session::Session(const SessionConfig& config, CreditPool& pool, RetainedBudget& retained, BlockCodec* codec,
                 TimePoint now)
    : config_(config),
      pool_(pool),
      retained_(retained),
      context_{.owner = *this,
               .pool = pool,
               .retained = retained,
               .codec = codec,
               .work = WorkBudget(config.work_per_turn)},
      next_id_(config.side == Side::dialler ? 1 : 2),
      now_(now),
      next_reclaim_(now + kReclaimInterval) {
  allow(config.allowed);
  grant_open_credit();
}

Session::~Session() {
  streams_.clear();
  retained_.remove(control_sending_.retained_bytes());
  pool_.give(open_granted_ - open_used_);
}

std::vector<Session::Carrier>::iterator Session::find_carrier(CarrierId id) {
  return std::find_if(carriers_.begin(), carriers_.end(), [&](const Carrier& c) { return c.id == id; });
}

void Session::attach(CarrierId carrier, TimePoint now, Duration rtt, bool may_send) {
  now_ = now;
  if (over_) return;
  carriers_.push_back({carrier, may_send, {}});
  if (may_send) send_on(carrier, rtt);
}

void Session::prefer(CarrierId carrier, TimePoint now) {
  now_ = now;
  auto found = find_carrier(carrier);
  if (over_ || carrier == preferred_ || found == carriers_.end()) return;
  found->may_send = true;
  send_on(carrier, smoothed_rtt());
}

void Session::send_on(CarrierId carrier, Duration rtt) {
  preferred_ = carrier;
  orphaned_since_.reset();
  liveness_.start(now_, rtt);
  if (std::exchange(silent_, false)) events_.push_back({.kind = Event::Kind::path_alive});
  announce_everything();
}

void Session::detach(CarrierId carrier, TimePoint now) {
  now_ = now;
  auto lost = find_carrier(carrier);
  if (lost == carriers_.end()) return;
  carriers_.erase(lost);
  if (over_) return;
  bool sent_here = preferred_ == carrier;
  auto next = std::find_if(carriers_.rbegin(), carriers_.rend(), [](const Carrier& c) { return c.may_send; });
  if (sent_here) preferred_ = next == carriers_.rend() ? 0 : next->id;
  control_sending_.on_carrier_lost(carrier);
  for (auto& [id, stream] : streams_) stream->on_carrier_lost(carrier, has_carrier());
  for (const auto& [id, received] : last_acks_) repeated_acks_.emplace(id, received);
  if (!last_acks_.empty()) acks_due(now_);
  if (!has_carrier()) {
    if (!orphaned_since_) orphaned_since_ = now;
    liveness_.stop();
  } else if (sent_here) {
    send_on(preferred_, smoothed_rtt());
  } else {
    // What control frames said on the lost carrier may never have arrived.
    announce_everything();
  }
}

// Control frames are not kept after they are sent; everything they could have said is said again.
void Session::announce_everything() {
  open_credit_due_ = true;
  for (auto& [id, stream] : streams_) {
    if (stream->wire_received() > 0 && !std::exchange(stream->marks.ack_due, true)) ack_due_.push_back(id);
    if (auto* credit = stream->receive_credit(); credit && credit->generation() > 0) announce_credit(*stream);
    if (stream->marks.reset_pending) announce_reset(*stream);
  }
  control_ack_due_ = true;
  acks_due(now_);
}

std::optional<TimePoint> Session::next_timeout() const {
  if (over_) return std::nullopt;
  if (!has_carrier())
    return orphaned_since_ ? std::optional(*orphaned_since_ + config_.orphan_patience) : std::nullopt;
  std::optional<TimePoint> next = liveness_.next_timeout(busy(), silent_);
  auto sooner = [&](TimePoint time) { next = next ? std::min(*next, time) : time; };
  if (ack_at_) sooner(*ack_at_);
  if (codec_at_) sooner(*codec_at_);
  if (!streams_.empty() && (pool_.under_pressure() || retained_.used_bytes() > 0)) sooner(next_reclaim_);
  return next;
}

void Session::on_timeout(TimePoint now) {
  now_ = now;
  if (over_) return;
  if (!has_carrier()) {
    if (orphaned_since_ && now >= *orphaned_since_ + config_.orphan_patience) abandon(now);
    return;
  }
  // A carrier without room may leave ACKs waiting: from here on they wait for it, not for the time.
  if (ack_at_ && now >= *ack_at_) acks_due(now);
  if (codec_at_ && now >= *codec_at_) poll_codec();
  liveness_.on_timeout(now, busy());
  if (!silent_ && liveness_.silent(now, busy())) {
    silent_ = true;
    events_.push_back({.kind = Event::Kind::path_silent});
  }
  if (now >= next_reclaim_) {
    next_reclaim_ = now + kReclaimInterval;
    grant_open_credit();
    for (auto& [id, stream] : streams_) {
      // Flows that waited for memory which other streams held.
      stream->tell_if_writable();
      if (pool_.under_pressure() && stream->receive_credit() && stream->receive_credit()->reclaim(now))
        announce_credit(*stream);
    }
  }
}

void Session::abandon(TimePoint now) {
  now_ = now;
  if (over_) return;
  over_ = true;
  next_to_end_ = streams_.begin();
  events_.push_back({.kind = Event::Kind::expired});
}

bool Session::end_streams(std::size_t most) {
  assert(over_);
  for (; most > 0 && next_to_end_ != streams_.end(); --most) {
    count_work(kWorkPerEnd);
    const auto ending = next_to_end_++;
    Stream& stream = *ending->second;
    stream.on_reset(ResetCode::session_lost);
    // No flow will let go of it.
    if (stream.marks.released || !stream.begun()) erase(ending);
  }
  return next_to_end_ != streams_.end();
}

void Session::erase(StreamMap::iterator stream) {
  if (over_ && stream == next_to_end_) ++next_to_end_;
  recent_ = nullptr;
  streams_.erase(stream);
}

std::optional<Event> Session::poll_event() {
  while (!events_.empty()) {
    Event event = events_.front();
    events_.pop_front();
    if (event.kind == Event::Kind::stream) {
      Stream* stream = find(event.stream);
      if (!stream || stream->marks.released) continue;
      if (over_ && event.stream_event == EventKind::opened) {  // no flow begins any more
        release(event.stream);
        continue;
      }
      if (event.stream_event == EventKind::readable) stream->marks.told_readable = false;
      if (event.stream_event == EventKind::writable) stream->marks.told_writable = false;
      if (event.stream_event == EventKind::features) stream->marks.told_features = false;
    }
    if (event.kind == Event::Kind::peer_allows) told_peer_allows_ = false;
    return event;
  }
  return std::nullopt;
}

void Session::set_line_rate(std::uint64_t bytes_per_second) {
  line_rate_ = bytes_per_second;
  constexpr Duration kFirstBlock = 1ms;
  auto carried = std::chrono::duration<double>(kFirstBlock).count() * static_cast<double>(bytes_per_second);
  context_.first_block_bytes = std::clamp(static_cast<std::size_t>(std::min(carried, 1e9)),
                                          StreamContext::kMinFirstBlock, kMaxBlockPlainBytes);
  if (context_.codec) context_.codec->set_line_rate(bytes_per_second);
}

bool Session::busy() const { return !streams_.empty(); }

// -------------------------------------------------------------------------------------------------------
// streams

std::uint64_t Session::first_credit() const {
  // Every stream has the floor; beyond it a quarter of what the peer has set aside for new streams, and half
  // of it as long as nobody else took any: who comes alone waits a round trip less for more.
  const std::uint64_t left = peer_open_limit_ - peer_open_taken_;
  return peer_floor_ + std::min(CreditPool::kMaxInitial, left >= peer_open_share_ ? left / 2 : left / 4);
}

Stream& Session::open(OpenRequest request, TimePoint now) {
  now_ = now;
  std::uint64_t credit = first_credit();
  if (request.features.window_bytes) credit = std::min<std::uint64_t>(credit, request.features.window_bytes);
  std::uint64_t above_floor = credit > peer_floor_ ? credit - peer_floor_ : 0;
  peer_open_taken_ += above_floor;
  StreamId id = next_id_;
  next_id_ += 2;
  auto& place = streams_[id];
  // The stream announces itself while it is made, so its place must exist before.
  place = std::make_unique<Stream>(id, context_, std::move(request), credit, above_floor);
  return *place;
}

Stream* Session::find(StreamId id) {
  if (recent_ && recent_->id() == id) return recent_;
  auto found = streams_.find(id);
  if (found == streams_.end()) return nullptr;
  recent_ = found->second.get();
  return recent_;
}

void Session::release(StreamId id) {
  Stream* stream = find(id);
  if (!stream) return;
  stream->marks.released = true;
  if (!over_ && !stream->may_finish()) stream->reset(ResetCode::aborted);
  forget_if_finished(id);
}

void Session::forget_if_finished(StreamId id) {
  auto found = streams_.find(id);
  if (found == streams_.end() || !found->second->marks.released) return;
  if (over_) return erase(found);
  if (!found->second->finished()) return;
  // What waits behind a gap is of use to nobody any more. The peer need not say it again, and will not: its
  // carrier knows that it came.
  const std::uint64_t seen = found->second->wire_seen();
  const bool waits = seen > found->second->wire_received();
  if (found->second->marks.ack_due || waits) repeated_acks_[id] = seen;
  if (waits) acks_due(now_);
  if (seen > 0) last_acks_.emplace_back(id, seen);
  if (last_acks_.size() > kMaxLastAcks) last_acks_.pop_front();
  if (opened_by_peer(id)) {
    finished_peer_streams_.add({id / 2, id / 2 + 1});
    --peer_streams_;
  }
  if (found->second->marks.unopened) --unopened_;
  erase(found);
}

void Session::tell(Stream& stream, EventKind kind) {
  if (stream.marks.released || !stream.begun()) return;
  if (kind == EventKind::readable && std::exchange(stream.marks.told_readable, true)) return;
  if (kind == EventKind::writable && std::exchange(stream.marks.told_writable, true)) return;
  if (kind == EventKind::features && std::exchange(stream.marks.told_features, true)) return;
  if (kind == EventKind::stopped && std::exchange(stream.marks.told_stopped, true)) return;
  events_.push_back({.kind = Event::Kind::stream, .stream = stream.id(), .stream_event = kind});
}

void Session::announce_credit(Stream& stream) {
  if (!std::exchange(stream.marks.credit_due, true)) credit_due_.push_back(stream.id());
}

void Session::announce_reset(Stream& stream) {
  if (!std::exchange(stream.marks.reset_queued, true)) reset_due_.push_back(stream.id());
}

void Session::reads_later(Stream& stream) {
  if (!std::exchange(stream.marks.reads_later, true)) reads_later_.push_back(stream.id());
}

// What an honest peer can have sent that no stream has read: what it was granted and this side has not taken
// yet, and a little for heads, and for streams whose OPEN is on its way.
std::uint64_t Session::waiting_allowance() const {
  constexpr std::uint64_t kLeastSlack = 256 * 1024;
  const SessionCredit& credit = context_.credit;
  const std::uint64_t granted =
      credit.granted + (open_granted_ - open_used_) + pool_.floor_bytes() * credit.streams;
  const std::uint64_t slack = std::max(kLeastSlack, pool_.cap_bytes() / 16);
  return std::min(pool_.cap_bytes(), granted - std::min(granted, credit.unread) + slack);
}

void Session::wants_to_send(Stream& stream, Turn turn) {
  if (std::exchange(stream.marks.queued, true)) return;
  if (turn == Turn::first) {
    scheduler_.add_first(stream.id(), stream.stream_class(now_));
  } else {
    scheduler_.add(stream.id(), stream.stream_class(now_));
  }
}

// -------------------------------------------------------------------------------------------------- open
// credit

// What the peer's new streams may use before they are granted more is set aside beforehand: the sum of all
// that is granted never exceeds the cap, whatever the peer opens within a round trip.
void Session::grant_open_credit() {
  const std::uint64_t ahead = open_granted_ - open_used_;
  const std::uint64_t wanted = std::min<std::uint64_t>(64 << 20, pool_.open_share(ahead));
  // A little more is not worth a frame, unless all is quiet: who comes next comes alone then.
  if (ahead >= (busy() ? wanted / 4 * 3 : wanted)) return;
  pool_.take(wanted - ahead);
  open_granted_ += wanted - ahead;
  open_credit_due_ = true;
}

Result<void> Session::take_open_credit(std::uint64_t bytes) {
  if (bytes > open_granted_ - open_used_) return LinkError::credit_exceeded;
  open_used_ += bytes;
  pool_.give(bytes);  // the stream's own ReceiveCredit takes it in the same breath
  return {};
}

bool Session::admits(Stream& opened) {
  if (std::exchange(opened.marks.unopened, false)) --unopened_;
  return peer_streams_ <= config_.max_peer_streams && !pool_.full();
}

// ----------------------------------------------------------------------------------------------- control
// stream

void Session::allow(const config::Features& features) {
  config_.allowed = features;
  Buffer body;
  write_features(features, body);
  write_control_record(RecordType::allowed, body);
}

void Session::change_features(StreamId id, const config::Features& features) {
  Stream* stream = find(id);
  if (!stream || stream->request().features == features) return;
  stream->use_features(features);
  Buffer body;
  ByteWriter(body).varint(id);
  write_features(features, body);
  write_control_record(RecordType::features, body);
}

void Session::write_control_record(RecordType type, Bytes body) {
  Buffer head;
  write_record_head(type, body.size(), head);
  Slice wire = Slice::joined(head, body);
  retained_.add(wire.size());
  control_sending_.append(std::move(wire));
}

std::uint64_t Session::retained_bytes() const {
  std::uint64_t sum = control_sending_.retained_bytes();
  for (const auto& [id, stream] : streams_) sum += stream->retained_bytes();
  return sum;
}

}  // namespace longhaul::link
