// SPDX-License-Identifier: Apache-2.0
// What the peer's frames say, and what follows from them.
#include "proxy/link/session.h"

namespace longhaul::link {
namespace {

using namespace std::chrono_literals;

// An ACK only frees memory on the other side, so it may wait for company: this many bytes, or a quarter of a
// round trip.
constexpr std::size_t kAckBytes = 256 * 1024;
constexpr Duration kAckDelayMin = 10ms, kAckDelayMax = 100ms;
constexpr std::uint64_t kMaxControlAhead = 1 << 20;

}  // namespace

Result<void> Session::receive(CarrierId id, Bytes bytes, TimePoint now) {
  now_ = now;
  auto carrier =
      std::find_if(carriers_.begin(), carriers_.end(), [&](const Carrier& c) { return c.id == id; });
  if (carrier == carriers_.end() || over_) return {};
  liveness_.on_heard(now);
  if (silent_) {
    silent_ = false;
    events_.push_back({.kind = Event::Kind::path_alive});
  }
  // Frames are read where they lie; only one that is cut by the end of `bytes` is copied and waits for its
  // rest.
  Buffer joined;
  if (!carrier->partial.empty()) {
    joined = std::move(carrier->partial);
    carrier->partial = {};
    joined.insert(joined.end(), bytes.begin(), bytes.end());
    bytes = joined;
  }
  while (!bytes.empty()) {
    auto parsed = parse_frame(bytes);
    if (!parsed) return parsed.error();
    if (!*parsed) break;
    if ((*parsed)->frame)
      if (auto handled = on_frame(*(*parsed)->frame, now); !handled) return handled;
    bytes = bytes.subspan((*parsed)->consumed);
  }
  carrier->partial.assign(bytes.begin(), bytes.end());
  return {};
}

Result<void> Session::on_frame(const Frame& frame, TimePoint now) {
  if (auto* stream = std::get_if<StreamFrame>(&frame)) return on_stream_frame(*stream, now);
  if (auto* ack = std::get_if<AckFrame>(&frame)) return on_ack(*ack), Result<void>{};
  if (auto* credit = std::get_if<CreditFrame>(&frame)) return on_credit(*credit), Result<void>{};
  if (auto* back = std::get_if<CreditReturnFrame>(&frame)) {
    if (Stream* stream = find(back->stream); stream && stream->receive_credit())
      stream->receive_credit()->on_returned(back->generation, back->limit);
    return {};
  }
  if (auto* reset = std::get_if<ResetFrame>(&frame)) return on_reset(*reset), Result<void>{};
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
    peer_open_limit_ = std::max(peer_open_limit_, open->limit);
    peer_floor_ = open->floor;
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
      repeated_acks_.push_back({frame.stream, frame.offset + frame.payload.size()});
      ack_at_ = ack_at_.value_or(now);
      return {};
    }
    if (peer_streams_ >= config_.max_peer_streams) return LinkError::too_many_streams;
    ++peer_streams_;
    stream = (streams_[frame.stream] = std::make_unique<Stream>(frame.stream, context_)).get();
  }
  std::uint64_t before = stream->wire_received();
  if (auto taken = stream->on_frame(frame.offset, frame.payload, now); !taken) return taken;
  if (!std::exchange(stream->marks.ack_due, true)) ack_due_.push_back(frame.stream);
  unacknowledged_bytes_ += stream->wire_received() - before;
  // What came twice is acknowledged at once: the other side still thinks it is missing.
  bool at_once = unacknowledged_bytes_ >= kAckBytes || stream->wire_received() == before;
  TimePoint due = at_once ? now : now + std::clamp(smoothed_rtt() / 4, kAckDelayMin, kAckDelayMax);
  ack_at_ = ack_at_ ? std::min(*ack_at_, due) : due;
  if (open_granted_ - open_used_ < pool_.open_share() / 2) grant_open_credit();
  forget_if_finished(frame.stream);
  return {};
}

class Session::ControlSink final : public RecordSink {
 public:
  explicit ControlSink(Session& session) : session_(session) {}

  Result<void> on_data(Bytes) override { return LinkError::malformed_record; }
  Result<void> on_record(RecordType type, Bytes body) override {
    if (type == RecordType::allowed) {
      auto features = parse_features(body);
      if (!features) return features.error();
      session_.peer_allowed_ = *features;
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
      if (session_.context_.codec) session_.context_.codec->on_message(body);
      return {};
    }
    return LinkError::malformed_record;
  }

 private:
  Session& session_;
};

Result<void> Session::on_control_bytes(const StreamFrame& frame) {
  ControlSink sink(*this);
  auto taken = control_receiving_.insert(frame.offset, frame.payload, kMaxControlAhead,
                                         [&](Bytes fresh) { return control_parser_.feed(fresh, sink); });
  if (!taken)
    return taken.error() == LinkError::credit_exceeded ? LinkError::control_overflow : taken.error();
  repeated_acks_.push_back({kControlStream, control_receiving_.contiguous()});
  ack_at_ = ack_at_.value_or(now_ + kAckDelayMin);
  return {};
}

void Session::on_ack(const AckFrame& frame) {
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
  for (const auto& entry : frame.entries) {
    Stream* stream = find(entry.stream);
    if (!stream) continue;
    if (stream->on_credit(entry.generation, entry.limit).tell_returned)
      credit_returns_.push_back({entry.stream, entry.generation, stream->send_credit().limit()});
  }
}

void Session::on_reset(const ResetFrame& frame) {
  reset_done_.push_back(frame.stream);
  if (Stream* stream = find(frame.stream)) {
    stream->on_reset(frame.code);
    forget_if_finished(frame.stream);
  } else if (opened_by_peer(frame.stream)) {
    // It may have overtaken the stream's first bytes: they are not to open anything any more.
    finished_peer_streams_.add({frame.stream / 2, frame.stream / 2 + 1});
  }
}

}  // namespace longhaul::link
