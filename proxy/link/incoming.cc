// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/incoming.h"

#include <utility>

namespace longhaul::link {
namespace {

constexpr std::uint64_t kWorkPerFrame = 100;

}  // namespace

Result<void> Incoming::feed(FrameAssembler& assembler, Bytes bytes) {
  struct Take {
    Incoming& incoming;
    Result<void> operator()(const StreamFrame& frame) const {
      count_work(kWorkPerFrame);
      return incoming.on_stream_frame(frame);
    }
    Result<void> operator()(const Frame& frame) const {
      count_work(kWorkPerFrame);
      return incoming.on_frame(frame);
    }
  };
  if (auto taken = assembler.feed(bytes, Take{*this}); !taken) return taken;
  return resume_blocks();
}

Result<void> Incoming::go_on() {
  auto done = control_.read_on();
  if (done) done = read_streams();
  if (done) done = resume_blocks();
  return done;
}

void Incoming::reads_later(StreamEntry& stream) {
  if (!std::exchange(stream.reads_later, true)) reads_later_.push_back(stream.id);
}

// In turn: a stream with remaining work is queued after the others.
Result<void> Incoming::read_streams() {
  while (!context_.work.used_up() && !reads_later_.empty()) {
    const StreamId id = reads_later_.front();
    reads_later_.pop_front();
    Stream* stream = streams_.find(id);
    if (!stream) continue;
    stream->entry().reads_later = false;
    if (auto read = stream->read_on(context_.now); !read) return read;
    control_.codec_due(context_.now + due_.ack_delay());
    lifetimes_.grant_open_credit();
    if (stream->entry().released) lifetimes_.forget_if_finished(id);
  }
  return {};
}

// Blocks that waited for others may be decodable now.
Result<void> Incoming::resume_blocks() {
  codec_waits_ = false;
  while (context_.codec) {
    if (context_.work.used_up()) {
      codec_waits_ = true;
      break;
    }
    auto id = context_.codec->poll_ready();
    if (!id) break;
    Stream* stream = streams_.find(StreamId(*id));
    if (!stream) continue;
    if (auto resumed = stream->resume(context_.now); !resumed) return resumed;
    control_.codec_due(context_.now + due_.ack_delay());
    if (stream->entry().released) lifetimes_.forget_if_finished(stream->id());
  }
  return {};
}

Result<void> Incoming::on_frame(const Frame& frame) {
  const TimePoint now = context_.now;
  if (auto* stream = std::get_if<StreamFrame>(&frame)) return on_stream_frame(*stream);
  if (auto* ack = std::get_if<AckFrame>(&frame)) return on_ack(*ack), Result<void>{};
  if (auto* credit = std::get_if<CreditFrame>(&frame)) return on_credit(*credit), Result<void>{};
  if (auto* back = std::get_if<CreditReturnFrame>(&frame)) {
    Stream* stream = streams_.find(back->stream);
    if (stream && stream->reader().credit() &&
        stream->reader().credit()->on_returned(back->generation, back->limit, now, liveness_.smoothed_rtt()))
      due_.credit(stream->entry());
    return {};
  }
  if (auto* reset = std::get_if<ResetFrame>(&frame)) return on_reset(*reset);
  if (auto* done = std::get_if<ResetDoneFrame>(&frame)) {
    if (Stream* stream = streams_.find(done->stream)) {
      stream->entry().reset_pending = false;
      lifetimes_.forget_if_finished(done->stream);
    }
    return {};
  }
  if (auto* ping = std::get_if<PingFrame>(&frame)) return due_.pong(ping->number), Result<void>{};
  if (auto* pong = std::get_if<PongFrame>(&frame))
    return liveness_.on_pong(pong->number, now), Result<void>{};
  if (auto* open = std::get_if<OpenCreditFrame>(&frame)) return open_credit_.on_frame(*open), Result<void>{};
  if (auto* close = std::get_if<CloseFrame>(&frame)) {
    close_reason_ = *close;
    events_.tell(Event::Kind::peer_closing);
  }
  // HELLO comes before the session.
  return {};
}

Result<void> Incoming::on_stream_frame(const StreamFrame& frame) {
  const TimePoint now = context_.now;
  if (frame.stream == kControlStream) {
    if (auto taken = control_.on_frame(frame); !taken) return taken;
    due_.control_ack();
    due_.acks_by(now + AckTimer::kShortest);
    return {};
  }
  Stream* stream = streams_.find(frame.stream);
  if (!stream) {
    const auto unknown = lifetimes_.judge(frame.stream);
    if (unknown == StreamLifetimes::Unknown::never_opened) return LinkError::unknown_stream;
    if (unknown == StreamLifetimes::Unknown::ended) {
      // Sent again because this side's last ACK of it was lost with a carrier.
      due_.ack_again(frame.stream, frame.offset + frame.payload.size());
      if (due_.too_many()) return LinkError::control_overflow;
      due_.acks_by(now);
      return {};
    }
    auto admitted = lifetimes_.admit(frame.stream);
    if (!admitted) return admitted.error();
    stream = *admitted;
    lifetimes_.open_begins(stream->entry());
  }
  const StreamOffset before = stream->reader().wire_received();
  const std::uint64_t plain_before = stream->blocks().in.plain;
  if (auto taken = stream->on_frame(frame.offset, frame.payload, now); !taken) return taken;
  if (lifetimes_.too_many_unopened()) return LinkError::too_many_streams;
  due_.ack(stream->entry());
  AckTimer& timer = due_.ack_timer();
  timer.on_received(stream->reader().wire_received() - before, stream->blocks().in.plain - plain_before);
  // Repeated bytes are acknowledged at once: the other side still assumes that they are missing. This
  // excludes bytes after a gap, which arrive by the thousand on a carrier that loses packets.
  const bool repeated = frame.offset + frame.payload.size() <= before;
  const TimePoint later = now + due_.ack_delay();
  due_.acks_by(timer.has_much() || repeated ? now : later);
  if (stream->blocks().in.blocks > 0) control_.codec_due(timer.has_much() ? now : later);
  lifetimes_.grant_open_credit();
  if (stream->entry().released) lifetimes_.forget_if_finished(frame.stream);
  return {};
}

void Incoming::on_ack(const AckFrame& frame) {
  count_work(kWorkPerFrame / 2 * frame.entries.size());
  for (const auto& entry : frame.entries) {
    if (entry.stream == kControlStream) {
      control_.on_acknowledged(entry.offset);
    } else if (Stream* stream = streams_.find(entry.stream)) {
      stream->writer().on_acknowledged(entry.offset);
      lifetimes_.forget_if_finished(entry.stream);
    }
  }
}

void Incoming::on_credit(const CreditFrame& frame) {
  count_work(kWorkPerFrame / 2 * frame.entries.size());
  for (const auto& entry : frame.entries) {
    Stream* stream = streams_.find(entry.stream);
    if (stream && stream->writer().on_credit(entry.generation, entry.limit).tell_returned)
      due_.credit_return(stream->entry());
  }
}

Result<void> Incoming::on_reset(const ResetFrame& frame) {
  if (frame.stream == kControlStream) return LinkError::malformed_frame;
  due_.reset_done(frame.stream);
  if (due_.too_many()) return LinkError::control_overflow;
  Stream* stream = streams_.find(frame.stream);
  if (!stream) {
    if (lifetimes_.judge(frame.stream) != StreamLifetimes::Unknown::begins) return {};
    auto admitted = lifetimes_.admit(frame.stream);
    if (!admitted) return admitted.error();
    stream = *admitted;
  }
  if (!stream->begun() && frame.code != ResetCode::no_reader) {
    // The RESET overtook the stream's OPEN, which no longer opens anything. The OPEN's credit is used.
    if (auto taken = open_credit_.take(frame.open_credit); !taken) return taken;
    stream->entry().released = true;
  }
  stream->on_reset(frame.code);
  lifetimes_.forget_if_finished(frame.stream);
  if (lifetimes_.too_many_gaps()) return LinkError::too_many_streams;
  return {};
}

// -----------------------------------------------------------------------------------------------------
// control stream

Result<void> Incoming::on_record(RecordType type, Bytes body) {
  if (type == RecordType::allowed) {
    auto features = parse_features(body, context_.keys);
    if (!features) return features.error();
    // Each change may cause a message with the features of every flow.
    if (control_.overflows()) return LinkError::control_overflow;
    peer_allowed_ = *features;
    events_.tell(Event::Kind::peer_allows);
    return {};
  }
  if (type == RecordType::features) {
    ByteReader in(body);
    auto id = in.varint();
    if (!id) return LinkError::malformed_record;
    auto features = parse_features(in.rest(), context_.keys);
    if (!features) return features.error();
    // The stream may have ended, or, over another carrier, not exist yet: then its OPEN has the features.
    Stream* stream = streams_.find(StreamId(*id));
    if (!stream || !stream->begun()) return {};
    stream->use_features(*features);
    events_.tell(stream->entry(), EventKind::features);
    return {};
  }
  if (type == RecordType::dictionary)
    return context_.codec ? context_.codec->on_message(body) : Result<void>{};
  return LinkError::malformed_record;
}

}  // namespace longhaul::link
