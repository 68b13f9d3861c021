// SPDX-License-Identifier: Apache-2.0
// What goes out next: control frames, then the control stream, then streams by turns.
#include "proxy/link/session.h"

namespace longhaul::link {
namespace {

// Entries of one ACK or CREDIT frame: so few that it goes into any packet.
constexpr std::size_t kEntriesPerFrame = 40;
// The least of a stream that is worth a frame of its own.
constexpr std::size_t kMinPayload = 32;
// What a stream sends under one head while no other wants to.
constexpr std::size_t kAlone = 16 * 1024;
// The codec keeps its further messages while the peer has not acknowledged so much; below what a receiver
// lets run ahead of a gap.
constexpr std::size_t kMaxControlKept = 512 * 1024;

}  // namespace

bool Session::wants_to_transmit(CarrierId carrier, TimePoint now) const {
  if (preferred_ == 0 || preferred_ != carrier || over_) return false;
  return control_taken_ < control_frames_.size() || !pongs_.empty() || !reset_due_.empty() ||
         !reset_done_.empty() || !credit_due_.empty() || !return_due_.empty() || open_credit_due_ ||
         acks_ready_ || (ack_at_ && now >= *ack_at_) || control_sending_.wants_to_send() ||
         !scheduler_.empty() || liveness_.ping_due() || codec_has_message() ||
         (codec_at_ && now >= *codec_at_);
}

void Session::transmit(CarrierId carrier, std::size_t budget, std::size_t chunk, Buffer& out, TimePoint now) {
  FrameBatch batch;
  transmit(carrier, budget, chunk, batch, now);
  for (Bytes piece : batch.bytes()) append(out, piece);
}

void Session::transmit(CarrierId carrier, std::size_t budget, std::size_t chunk, FrameBatch& out,
                       TimePoint now) {
  if (!wants_to_transmit(carrier, now)) return;
  now_ = now;
  WorkBudget::Scope working(context_.work);
  std::size_t end = out.size() + budget;
  if (codec_has_message() || (codec_at_ && now >= *codec_at_)) poll_codec();
  // What another carrier had no room for.
  append(out.written(), Bytes(control_frames_).subspan(control_taken_));
  control_taken_ = control_frames_.size();
  write_control_frames(out.written(), now);
  write_acks(out.written());
  while (control_sending_.wants_to_send())
    write_chunk(control_sending_, kControlStream, kMaxStreamPayload, carrier, out);
  write_streams(carrier, end, chunk, out, now);
}

bool Session::codec_has_message() const {
  return context_.codec && control_sending_.retained_bytes() < kMaxControlKept &&
         context_.codec->has_message();
}

void Session::poll_codec() {
  codec_at_.reset();
  while (context_.codec && control_sending_.retained_bytes() < kMaxControlKept) {
    auto message = context_.codec->poll_message();
    if (!message) break;
    write_control_record(RecordType::dictionary, message->bytes());
  }
}

// What write_control_frames() and write_acks() would write.
bool Session::control_frames_due() const {
  return !pongs_.empty() || !reset_due_.empty() || !reset_done_.empty() || !return_due_.empty() ||
         !credit_due_.empty() || !ack_due_.empty() || !repeated_acks_.empty() || open_credit_due_ ||
         control_ack_due_ || acks_ready_ || ack_at_ || liveness_.ping_due();
}

void Session::write_control_frames(Buffer& out, TimePoint now) {
  for (std::uint64_t number : std::exchange(pongs_, {})) write_frame(PongFrame{number}, out);
  if (liveness_.ping_due()) write_frame(PingFrame{liveness_.make_ping(now)}, out);
  if (std::exchange(open_credit_due_, false))
    write_frame(OpenCreditFrame{open_granted_, pool_.floor_bytes()}, out);
  for (StreamId id : std::exchange(reset_due_, {})) {
    Stream* stream = find(id);
    if (!stream || !stream->marks.reset_pending) continue;
    stream->marks.reset_queued = false;
    write_frame(ResetFrame{id, stream->reset_code(), stream->open_credit()}, out);
  }
  for (StreamId id : std::exchange(reset_done_, {})) write_frame(ResetDoneFrame{id}, out);
  for (StreamId id : std::exchange(return_due_, {})) {
    Stream* stream = find(id);
    if (!stream) continue;
    stream->marks.return_due = false;
    write_frame(CreditReturnFrame{id, stream->send_credit().generation(), stream->send_credit().limit()},
                out);
  }

  CreditFrame credit;
  auto flush = [&] {
    if (!credit.entries.empty()) write_frame(credit, out);
    credit.entries.clear();
  };
  for (StreamId id : std::exchange(credit_due_, {})) {
    Stream* stream = find(id);
    if (!stream) continue;
    stream->marks.credit_due = false;
    if (ReceiveCredit* own = stream->receive_credit())
      credit.entries.push_back({id, own->generation(), own->announced_limit()});
    if (credit.entries.size() == kEntriesPerFrame) flush();
  }
  flush();
}

// ACKs ride along with whatever is sent anyway.
void Session::write_acks(Buffer& out) {
  ack_at_.reset();
  acks_ready_ = false;
  unacknowledged_bytes_ = 0;
  unacknowledged_plain_ = 0;
  AckFrame ack;
  auto flush = [&] {
    if (!ack.entries.empty()) write_frame(ack, out);
    ack.entries.clear();
  };
  auto add = [&](StreamId id, std::uint64_t offset) {
    ack.entries.push_back({id, offset});
    if (ack.entries.size() == kEntriesPerFrame) flush();
  };
  if (std::exchange(control_ack_due_, false)) add(kControlStream, control_receiving_.contiguous());
  for (const auto& [id, offset] : std::exchange(repeated_acks_, {})) add(id, offset);
  for (StreamId id : std::exchange(ack_due_, {})) {
    Stream* stream = find(id);
    if (!stream) continue;
    stream->marks.ack_due = false;
    add(id, stream->wire_received());
  }
  flush();
}

void Session::write_streams(CarrierId carrier, std::size_t end, std::size_t chunk, FrameBatch& out,
                            TimePoint now) {
  while (out.size() < end && !context_.work.used_up()) {
    auto id = scheduler_.take();
    if (!id) return;
    Stream* stream = find(*id);
    if (!stream) continue;
    stream->marks.queued = false;
    // Nobody waits behind a stream that is alone. Larger frames would only be whole later: TLS records are no
    // larger.
    const std::size_t turn =
        std::min(scheduler_.empty() ? std::max(chunk, kAlone) : chunk, kMaxStreamPayload);
    const std::size_t room = std::min(turn, std::max<std::size_t>(end - out.size(), 512));
    const bool begins = stream->prepare_to_send(room);
    std::size_t sent = write_chunk(stream->sending(), *id, room, carrier, out);
    stream->on_sent(sent, now);
    if (stream->wants_to_send()) wants_to_send(*stream);
    stream->tell_if_writable();
    // The line stands idle until this is sealed and sent: what follows is encoded while it is on its way.
    if (begins) return;
  }
}

std::size_t Session::write_chunk(SendStream& sending, StreamId id, std::size_t limit, CarrierId carrier,
                                 FrameBatch& out) {
  auto range = sending.next(limit);
  if (!range) return 0;
  write_stream_head(id, range->begin, static_cast<std::size_t>(range->size()), out.written());
  sending.visit(*range, [&](Bytes piece) { out.borrow(piece); });
  sending.on_sent(*range, carrier);
  return static_cast<std::size_t>(range->size());
}

// ------------------------------------------------------------------------------------------------ in packets

void Session::fill(CarrierId carrier, std::size_t room, Streams which, Buffer& out, PacketContent& content,
                   TimePoint now) {
  if (!wants_to_transmit(carrier, now)) return;
  now_ = now;
  WorkBudget::Scope working(context_.work);
  std::size_t end = out.size() + room;
  if (codec_has_message() || (codec_at_ && now >= *codec_at_)) poll_codec();
  if (!fill_control(end, out, content, now)) return;
  while (control_sending_.wants_to_send())
    if (!fill_chunk(control_sending_, kControlStream, carrier, end, out, content)) return;
  for (;;) {
    if (which == Streams::interactive && !scheduler_.interactive_next()) return;
    auto id = scheduler_.take();
    if (!id) return;
    Stream* stream = find(*id);
    if (!stream) continue;
    stream->marks.queued = false;
    std::size_t before = out.size();
    // A stream that has nothing to send any more was reset while it waited.
    stream->prepare_to_send(end - out.size());
    bool fits = fill_chunk(stream->sending(), *id, carrier, end, out, content);
    if (fits) stream->on_sent(out.size() - before, now);
    if (stream->wants_to_send()) wants_to_send(*stream, fits ? Turn::last : Turn::first);
    stream->tell_if_writable();
    if (!fits) return;
  }
}

std::optional<Session::NextStream> Session::next_stream() {
  static const config::Features kOfNone;
  while (auto id = scheduler_.next()) {
    if (Stream* stream = find(*id))
      return NextStream{scheduler_.interactive_next() ? StreamClass::interactive : StreamClass::bulk,
                        stream->begun() ? stream->request().features : kOfNone};
    // Forgotten while it waited. If it stayed, a packet for interactive streams alone would never get past
    // it.
    scheduler_.take();
  }
  return std::nullopt;
}

// False: the next frame has to wait for another packet.
bool Session::fill_control(std::size_t end, Buffer& out, PacketContent& content, TimePoint now) {
  if (control_taken_ == control_frames_.size()) {
    control_frames_.clear();
    control_taken_ = 0;
    if (!control_frames_due()) return true;
    write_control_frames(control_frames_, now);
    write_acks(control_frames_);
  }
  while (control_taken_ < control_frames_.size()) {
    Bytes rest = Bytes(control_frames_).subspan(control_taken_);
    Bytes frame = rest.first(**frame_size(rest));
    if (frame.size() > end - out.size()) return false;
    append(out, frame);
    control_taken_ += frame.size();
    // A PING that comes late measures nothing, and the next one is due soon.
    auto type = static_cast<FrameType>(frame.front());
    if (type != FrameType::ping && type != FrameType::pong) append(content.control, frame);
  }
  return true;
}

bool Session::fill_chunk(SendStream& sending, StreamId id, CarrierId carrier, std::size_t end, Buffer& out,
                         PacketContent& content) {
  std::size_t room = end - out.size();
  auto range = sending.next(kMaxStreamPayload);
  if (!range) return true;
  std::uint64_t whole = range->size();
  // The head of what fits is never longer than that of a frame as large as the room.
  std::size_t head =
      stream_head_size(id, range->begin, std::min<std::size_t>(room, static_cast<std::size_t>(whole)));
  if (head + std::min<std::uint64_t>(kMinPayload, whole) > room) return false;
  range->end = range->begin + std::min<std::uint64_t>(whole, room - head);
  write_stream_head(id, range->begin, static_cast<std::size_t>(range->size()), out);
  sending.copy(*range, out);
  sending.on_sent(*range, carrier);
  content.ranges.push_back({id, *range});
  return true;
}

void Session::on_lost(CarrierId carrier, const PacketContent& content, TimePoint now) {
  now_ = now;
  append(control_frames_, content.control);
  for (const auto& [id, bytes] : content.ranges) {
    if (id == kControlStream) {
      control_sending_.on_lost(bytes, carrier);
    } else if (Stream* stream = find(id)) {
      stream->sending().on_lost(bytes, carrier);
      if (stream->sending().wants_to_send()) wants_to_send(*stream, Turn::first);
    }
  }
}

void Session::on_arrived(const PacketContent& content) {
  for (const auto& [id, bytes] : content.ranges) {
    if (id == kControlStream) {
      control_sending_.on_arrived(bytes);
    } else if (Stream* stream = find(id)) {
      stream->sending().on_arrived(bytes);
    }
  }
}

}  // namespace longhaul::link
