// SPDX-License-Identifier: Apache-2.0
// What the peer's frames say, and what follows from them.
#include "proxy/link/session.h"

namespace longhaul::link {
namespace {

using namespace std::chrono_literals;

// An ACK only frees memory on the other side, so it may wait for company: this many bytes, or a quarter of a
// round trip. Where that brings little there is little to free, and the carrier's own answer to each ACK
// would take its share of a slow line: one in ten milliseconds takes 2 % of a T1.
constexpr std::size_t kAckBytes = 256 * 1024;
constexpr Duration kAckDelayMin = 10ms, kAckDelayMax = 100ms;
constexpr std::size_t kFewBytes = 32 * 1024;
constexpr Duration kAckDelayOfFew = 250ms;
constexpr std::uint64_t kMaxControlAhead = 4 << 20;
// Bounds on what a peer can make this side remember while it takes nothing that this side sends. An honest
// peer has no more streams than it may have open, and waits for an answer for each. When the session ends all
// of its streams end in one turn: tens of thousands would keep others waiting for that.
constexpr std::size_t kMaxRefused = 8192;   // streams beyond the limit, until the peer knows
constexpr std::size_t kMaxUnopened = 4096;  // streams of which something came and the end of OPEN did not
constexpr std::size_t kMaxGaps = 65'536;    // in the numbers of finished streams, beyond the limit
constexpr std::size_t kMaxDue = 262'144;
// Of what this side has to say on the control stream because of the peer.
constexpr std::uint64_t kMaxControlUnacknowledged = 32 << 20;
constexpr std::uint64_t kWorkPerFrame = 100;

}  // namespace

Result<void> Session::receive(CarrierId id, Bytes bytes, TimePoint now) {
  now_ = now;
  auto carrier = find_carrier(id);
  if (carrier == carriers_.end() || over_) return {};
  WorkBudget::Scope working(context_.work);
  liveness_.on_heard(now);
  if (silent_) {
    silent_ = false;
    events_.push_back({.kind = Event::Kind::path_alive});
  }
  struct Take {
    Session& session;
    TimePoint now;
    Result<void> operator()(const StreamFrame& frame) const {
      count_work(kWorkPerFrame);
      return session.on_stream_frame(frame, now);
    }
    Result<void> operator()(const Frame& frame) const {
      count_work(kWorkPerFrame);
      return session.on_frame(frame, now);
    }
  };
  auto taken = carrier->assembler.feed(bytes, Take{*this, now});
  if (taken) taken = resume_blocks();
  if (taken) return {};
  // Streams may have lost bytes that were acknowledged already: nothing may go on from here.
  abandon(now);
  return taken;
}

Result<void> Session::go_on(TimePoint now) {
  now_ = now;
  if (over_) return {};
  WorkBudget::Scope working(context_.work);
  auto done = do_work_left();
  if (done) done = resume_blocks();
  if (!done) abandon(now);
  return done;
}

// Streams by turns: one that still has something left is behind the others then.
Result<void> Session::do_work_left() {
  while (!context_.work.used_up() && !control_behind_.empty()) {
    const Slice piece = control_behind_.front();
    auto rest = read_control(piece.bytes());
    if (!rest) return rest.error();
    control_behind_.drop_until(control_behind_.begin_offset() + piece.size() - rest->size());
  }
  while (!context_.work.used_up() && !reads_later_.empty()) {
    const StreamId id = reads_later_.front();
    reads_later_.pop_front();
    Stream* stream = find(id);
    if (!stream) continue;
    stream->marks.reads_later = false;
    if (auto read = stream->read_on(now_); !read) return read;
    codec_due(now_ + ack_delay());
    grant_open_credit();
    if (stream->marks.released) forget_if_finished(id);
  }
  return {};
}

// What came brought blocks nearer that others waited for.
Result<void> Session::resume_blocks() {
  codec_waits_ = false;
  while (context_.codec) {
    if (context_.work.used_up()) {
      codec_waits_ = true;
      break;
    }
    auto id = context_.codec->poll_ready();
    if (!id) break;
    Stream* stream = find(*id);
    if (!stream) continue;
    if (auto resumed = stream->resume(now_); !resumed) return resumed;
    codec_due(now_ + ack_delay());
    if (stream->marks.released) forget_if_finished(*id);
  }
  return {};
}

Result<void> Session::on_frame(const Frame& frame, TimePoint now) {
  if (auto* stream = std::get_if<StreamFrame>(&frame)) return on_stream_frame(*stream, now);
  if (auto* ack = std::get_if<AckFrame>(&frame)) return on_ack(*ack), Result<void>{};
  if (auto* credit = std::get_if<CreditFrame>(&frame)) return on_credit(*credit), Result<void>{};
  if (auto* back = std::get_if<CreditReturnFrame>(&frame)) {
    Stream* stream = find(back->stream);
    if (stream && stream->receive_credit() &&
        stream->receive_credit()->on_returned(back->generation, back->limit, now, smoothed_rtt()))
      announce_credit(*stream);
    return {};
  }
  if (auto* reset = std::get_if<ResetFrame>(&frame)) return on_reset(*reset);
  if (auto* done = std::get_if<ResetDoneFrame>(&frame)) {
    if (Stream* stream = find(done->stream)) {
      stream->marks.reset_pending = false;
      forget_if_finished(done->stream);
    }
    return {};
  }
  if (auto* ping = std::get_if<PingFrame>(&frame)) {
    // One answer is enough: an older ping is only of use to nobody.
    pongs_.assign(1, ping->number);
    return {};
  }
  if (auto* pong = std::get_if<PongFrame>(&frame))
    return liveness_.on_pong(pong->number, now), Result<void>{};
  if (auto* open = std::get_if<OpenCreditFrame>(&frame)) {
    if (open->limit > peer_open_limit_) {  // else an older one, or the same again
      peer_open_limit_ = open->limit;
      peer_open_share_ = peer_open_limit_ - peer_open_taken_;
    }
    peer_floor_ = std::min(open->floor, CreditPool::kMaxInitial);
    return {};
  }
  if (auto* close = std::get_if<CloseFrame>(&frame)) {
    close_reason_ = *close;
    events_.push_back({.kind = Event::Kind::peer_closing});
  }
  // HELLO comes before the session.
  return {};
}

Result<void> Session::on_stream_frame(const StreamFrame& frame, TimePoint now) {
  if (frame.stream == kControlStream) return on_control_bytes(frame);
  Stream* stream = find(frame.stream);
  if (!stream) {
    bool peers = opened_by_peer(frame.stream);
    if (!peers && frame.stream >= next_id_) return LinkError::unknown_stream;
    if (!peers || finished_peer_streams_.contains(frame.stream / 2)) {
      // Sent again because our last word on it was lost with a carrier.
      std::uint64_t& offset = repeated_acks_[frame.stream];
      offset = std::max(offset, frame.offset + frame.payload.size());
      if (repeated_acks_.size() > kMaxDue) return LinkError::control_overflow;
      acks_due(now);
      return {};
    }
    auto admitted = admit(frame.stream);
    if (!admitted) return admitted.error();
    stream = *admitted;
    stream->marks.unopened = true;
    ++unopened_;
  }
  const std::uint64_t before = stream->wire_received(), plain_before = stream->blocks().in.plain;
  if (auto taken = stream->on_frame(frame.offset, frame.payload, now); !taken) return taken;
  if (unopened_ > kMaxUnopened) return LinkError::too_many_streams;
  if (!std::exchange(stream->marks.ack_due, true)) ack_due_.push_back(frame.stream);
  unacknowledged_bytes_ += stream->wire_received() - before;
  unacknowledged_plain_ += stream->blocks().in.plain - plain_before;
  // What came twice is acknowledged at once: the other side still thinks it is missing. What waits for a gap
  // is not that; it comes by the thousand on a carrier that loses packets.
  bool repeated = frame.offset + frame.payload.size() <= before;
  const bool many = unacknowledged_bytes_ >= kAckBytes;
  const TimePoint later = now + ack_delay();
  acks_due(many || repeated ? now : later);
  if (stream->blocks().in.blocks > 0) codec_due(many ? now : later);
  grant_open_credit();
  if (stream->marks.released) forget_if_finished(frame.stream);
  return {};
}

Result<Stream*> Session::admit(StreamId id) {
  // Up to the limit they live; those beyond it are reset as soon as their OPEN is read.
  if (peer_streams_ >= config_.max_peer_streams + kMaxRefused) return LinkError::too_many_streams;
  // Those without credit have not begun, or are over and the peer does not say that it knows: the caps of
  // flows and of credit do not bound them.
  constexpr std::uint64_t kStreamCost = 1024;
  if ((streams_.size() - context_.credit.streams) * kStreamCost > pool_.cap_bytes())
    return LinkError::too_many_streams;
  ++peer_streams_;
  return (streams_[id] = std::make_unique<Stream>(id, context_)).get();
}

void Session::acks_due(TimePoint at) {
  if (at <= now_) {
    acks_ready_ = true;
    ack_at_.reset();
  } else if (!acks_ready_) {
    ack_at_ = ack_at_ ? std::min(*ack_at_, at) : at;
  }
}

Duration Session::ack_delay() const {
  if (std::max(unacknowledged_bytes_, unacknowledged_plain_) < kFewBytes) return kAckDelayOfFew;
  return std::clamp(smoothed_rtt() / 4, kAckDelayMin, kAckDelayMax);
}

// What blocks are held is told as seldom as what bytes have come, and not with each packet that goes anyway:
// it is only of use for blocks to come.
void Session::codec_due(TimePoint at) { codec_at_ = codec_at_ ? std::min(*codec_at_, at) : at; }

class Session::ControlSink final : public RecordSink {
 public:
  explicit ControlSink(Session& session) : session_(session) {}

  Result<void> on_data(Bytes) override { return LinkError::malformed_record; }
  Result<void> on_record(RecordType type, Bytes body) override {
    if (type == RecordType::allowed) {
      auto features = parse_features(body);
      if (!features) return features.error();
      // Each change may be answered with the features of every flow.
      if (session_.control_sending_.retained_bytes() > kMaxControlUnacknowledged)
        return LinkError::control_overflow;
      session_.peer_allowed_ = *features;
      if (!std::exchange(session_.told_peer_allows_, true))
        session_.events_.push_back({.kind = Event::Kind::peer_allows});
      return {};
    }
    if (type == RecordType::features) {
      ByteReader in(body);
      auto id = in.varint();
      if (!id) return LinkError::malformed_record;
      auto features = parse_features(in.rest());
      if (!features) return features.error();
      // The stream may be gone, or, over another carrier, not yet there: then its OPEN says what counts.
      Stream* stream = session_.find(*id);
      if (!stream || !stream->begun()) return {};
      stream->use_features(*features);
      session_.tell(*stream, EventKind::features);
      return {};
    }
    if (type == RecordType::dictionary) {
      return session_.context_.codec ? session_.context_.codec->on_message(body) : Result<void>{};
    }
    return LinkError::malformed_record;
  }
  bool waits() const override { return session_.context_.work.used_up(); }

 private:
  Session& session_;
};

// Answers what is too much for this turn.
Result<Bytes> Session::read_control(Bytes wire) {
  ControlSink sink(*this);
  return control_parser_.feed(wire, sink);
}

Result<void> Session::on_control_bytes(const StreamFrame& frame) {
  const std::uint64_t ahead = control_receiving_.waiting_cost() + control_behind_.size();
  std::uint64_t room = kMaxControlAhead - std::min(kMaxControlAhead, ahead);
  auto taken = control_receiving_.insert(frame.offset, frame.payload, room, [&](Bytes fresh) -> Result<void> {
    if (control_behind_.empty()) {
      auto rest = read_control(fresh);
      if (!rest) return rest.error();
      fresh = *rest;
    }
    control_behind_.push_copy(fresh);
    return {};
  });
  if (!taken) return taken.error() == LinkError::too_fragmented ? LinkError::control_overflow : taken.error();
  if (control_behind_.size() > kMaxControlAhead) return LinkError::control_overflow;
  control_ack_due_ = true;
  acks_due(now_ + kAckDelayMin);
  return {};
}

void Session::on_ack(const AckFrame& frame) {
  count_work(kWorkPerFrame / 2 * frame.entries.size());
  for (const auto& entry : frame.entries) {
    if (entry.stream == kControlStream) {
      retained_.remove(control_sending_.on_acknowledged(entry.offset));
      continue;
    }
    Stream* stream = find(entry.stream);
    if (!stream) continue;
    std::uint64_t before = stream->sending().acknowledged();
    stream->on_acknowledged(entry.offset);
    acknowledged_bytes_ += stream->sending().acknowledged() - before;
    forget_if_finished(entry.stream);
  }
}

void Session::on_credit(const CreditFrame& frame) {
  count_work(kWorkPerFrame / 2 * frame.entries.size());
  for (const auto& entry : frame.entries) {
    Stream* stream = find(entry.stream);
    if (!stream) continue;
    if (stream->on_credit(entry.generation, entry.limit).tell_returned &&
        !std::exchange(stream->marks.return_due, true))
      return_due_.push_back(entry.stream);
  }
}

Result<void> Session::on_reset(const ResetFrame& frame) {
  if (frame.stream == kControlStream) return LinkError::malformed_frame;
  reset_done_.insert(frame.stream);
  if (reset_done_.size() > kMaxDue) return LinkError::control_overflow;
  Stream* stream = find(frame.stream);
  if (!stream) {
    if (!opened_by_peer(frame.stream) || finished_peer_streams_.contains(frame.stream / 2)) return {};
    auto admitted = admit(frame.stream);
    if (!admitted) return admitted.error();
    stream = *admitted;
  }
  if (!stream->begun() && frame.code != ResetCode::no_reader) {
    // It overtook the stream's OPEN, which is not to open anything any more; what that took is taken.
    if (auto taken = take_open_credit(frame.open_credit); !taken) return taken;
    stream->marks.released = true;
  }
  stream->on_reset(frame.code);
  forget_if_finished(frame.stream);
  // Each hole is a stream that was opened and is not finished.
  if (finished_peer_streams_.count() > config_.max_peer_streams + kMaxGaps)
    return LinkError::too_many_streams;
  return {};
}

}  // namespace longhaul::link
