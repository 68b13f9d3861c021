// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/outgoing.h"

#include <algorithm>

namespace longhaul::link {
namespace {

// The smallest part of a stream that is worth a separate frame.
constexpr std::size_t kMinPayload = 32;
// The amount that a stream sends under one head while no other needs to send.
constexpr std::size_t kAlone = 16 * 1024;
// A helper examines this many waiting streams for one that has enough to send.
constexpr std::size_t kLookedAt = 8;

}  // namespace

bool Outgoing::wants_to_transmit(CarrierId carrier, TimePoint now) const {
  if (stopped_ || carriers_.preferred() == kNoCarrier) return false;
  const bool streams_wait = !scheduler_.empty(carriers_.lanes_of(carrier)) || copies_.wait_for(carrier) ||
                            place_for_helper(carrier).has_value();
  if (streams_wait || carriers_.preferred() != carrier) return streams_wait;
  return control_taken_ < control_frames_.size() || due_.urgent() || due_.ack_timer().is_due(now) ||
         control_.sending().wants_to_send() || control_.codec_is_due(now);
}

void Outgoing::transmit(CarrierId carrier, std::size_t budget, std::size_t chunk, Buffer& out,
                        TimePoint now) {
  FrameBatch batch;
  transmit(carrier, budget, chunk, batch, now);
  for (Bytes piece : batch.bytes()) append(out, piece);
}

void Outgoing::transmit(CarrierId carrier, std::size_t budget, std::size_t chunk, FrameBatch& out,
                        TimePoint now) {
  if (carrier != carriers_.preferred() || !wants_to_transmit(carrier, now)) return;
  context_.now = now;
  WorkBudget::Scope working(context_.work);
  const std::size_t end = out.size() + budget;
  if (control_.codec_is_due(now)) control_.poll_codec();
  // Frames that did not fit on another carrier.
  append(out.written(), Bytes(control_frames_).subspan(control_taken_));
  control_taken_ = control_frames_.size();
  do due_.write(out.written());
  while (due_.any() && out.size() < end);
  while (control_.sending().wants_to_send())
    write_chunk(control_.sending(), kControlStream, kMaxStreamPayload, carrier, out);
  write_streams(carrier, end, chunk, out);
}

void Outgoing::write_streams(CarrierId carrier, std::size_t end, std::size_t chunk, FrameBatch& out) {
  while (out.size() < end && !context_.work.used_up()) {
    auto id = scheduler_.take(carriers_.lanes_of(carrier));
    if (!id) return;
    Stream* stream = streams_.find(*id);
    if (!stream) continue;
    stream->entry().queued = false;
    // If a stream is alone, no other one waits for it. A frame larger than a TLS record would take longer to
    // arrive complete.
    const std::size_t turn =
        std::min(scheduler_.empty() ? std::max(chunk, kAlone) : chunk, kMaxStreamPayload);
    const std::size_t room = std::min(turn, std::max<std::size_t>(end - out.size(), 512));
    StreamOutput& output = stream->writer().output();
    const bool begins = output.prepare_to_send(room);
    std::size_t sent = write_chunk(output.sending(), *id, room, carrier, out);
    output.on_sent(sent, context_.now);
    if (output.wants_to_send()) wants_to_send(stream->entry(), output, Turn::last);
    stream->writer().tell_if_writable();
    // The line is idle until this is encrypted and sent: later blocks are encoded meanwhile.
    if (begins) return;
  }
}

std::size_t Outgoing::write_chunk(SendStream& sending, StreamId id, std::size_t limit, CarrierId carrier,
                                  FrameBatch& out) {
  auto range = sending.next(limit);
  if (!range) return 0;
  write_stream_head(id, range->begin, static_cast<std::size_t>(range->size()), out.written());
  sending.visit(*range, [&](Bytes piece) { out.borrow(piece); });
  sending.on_sent(*range, carrier);
  return static_cast<std::size_t>(range->size());
}

// ------------------------------------------------------------------------------------------------ in packets

void Outgoing::fill(CarrierId carrier, std::size_t room, Streams which, Buffer& out, PacketContent& content,
                    TimePoint now) {
  if (!wants_to_transmit(carrier, now)) return;
  context_.now = now;
  WorkBudget::Scope working(context_.work);
  const std::size_t end = out.size() + room;
  if (copies_.wait_for(carrier) && !fill_copies(end, out, content)) return;
  if (carrier == carriers_.preferred()) {
    if (control_.codec_is_due(now)) control_.poll_codec();
    if (!fill_control(end, out, content)) return;
    while (control_.sending().wants_to_send())
      if (!fill_chunk(control_.sending(), kControlStream, carrier, end, out, content)) return;
  }
  fill_lanes(carrier, which, end, out, content);
  // A packet of interactive streams, protected as such, is not filled up.
  if (which == Streams::all) fill_as_helper(carrier, end, out, content);
}

// The streams of the policies that this carrier serves.
void Outgoing::fill_lanes(CarrierId carrier, Streams which, std::size_t end, Buffer& out,
                          PacketContent& content) {
  const Lanes lanes = carriers_.lanes_of(carrier);
  for (;;) {
    if (which == Streams::interactive && !scheduler_.interactive_next(lanes)) return;
    auto id = scheduler_.take(lanes);
    if (!id) return;
    Stream* stream = streams_.find(*id);
    if (!stream) continue;
    stream->entry().queued = false;
    std::size_t before = out.size();
    // A stream with nothing left to send was reset while it waited.
    StreamOutput& output = stream->writer().output();
    const bool copied =
        copies_.active() && copies_.carrier() != carrier && SecondCopies::worth_it(output.sending());
    const std::size_t ranges = content.ranges.size();
    output.prepare_to_send(end - out.size());
    bool fits = fill_chunk(output.sending(), *id, carrier, end, out, content);
    if (copied && content.ranges.size() > ranges) copies_.add(*id, content.ranges.back().bytes);
    if (fits) output.on_sent(out.size() - before, context_.now);
    if (output.wants_to_send()) wants_to_send(stream->entry(), output, fits ? Turn::last : Turn::first);
    stream->writer().tell_if_writable();
    if (!fits) return;
  }
}

// Lost bytes, for which others may already wait, are left to the preferred carrier.
std::optional<std::size_t> Outgoing::place_for_helper(CarrierId carrier) const {
  const auto above = carriers_.helps_above(carrier);
  if (!above) return std::nullopt;
  for (std::size_t place = 0; place < kLookedAt; ++place) {
    const auto id = scheduler_.bulk_at(place);
    if (!id) break;
    const Stream* stream = streams_.find(*id);
    if (!stream) continue;
    const StreamOutput& output = stream->writer().output();
    if (output.wants_to_send() && !output.sending().repeats() && output.unsent_bytes() > *above) return place;
  }
  return std::nullopt;
}

void Outgoing::fill_as_helper(CarrierId carrier, std::size_t end, Buffer& out, PacketContent& content) {
  while (const auto place = place_for_helper(carrier)) {
    Stream& stream = *streams_.find(*scheduler_.bulk_at(*place));
    scheduler_.take_bulk(*place);
    stream.entry().queued = false;
    const std::size_t before = out.size();
    StreamOutput& output = stream.writer().output();
    output.prepare_to_send(end - before);
    const bool fits = fill_chunk(output.sending(), stream.id(), carrier, end, out, content);
    if (fits) output.on_sent(out.size() - before, context_.now);
    if (output.wants_to_send()) wants_to_send(stream.entry(), output, fits ? Turn::last : Turn::first);
    stream.writer().tell_if_writable();
    if (!fits) return;
  }
}

// Copies first: they are the most urgent.
bool Outgoing::fill_copies(std::size_t end, Buffer& out, PacketContent& content) {
  while (copies_.wait_for(copies_.carrier())) {
    const SecondCopies::Copy copy = copies_.front();
    Stream* stream = streams_.find(copy.stream);
    if (!stream) {
      copies_.taken(copy.bytes.end);
      continue;
    }
    const SendStream& sending = stream->writer().output().sending();
    StreamRange range{std::max(copy.bytes.begin, sending.acknowledged()),
                      std::min(copy.bytes.end, sending.ever_sent())};
    if (range.empty()) {
      copies_.taken(copy.bytes.end);
      continue;
    }
    // The first carrier remains responsible for them, and retransmits them if they are lost.
    if (!fill_range(sending, copy.stream, range, end, out, content)) return false;
    copies_.taken(range.end);
  }
  return true;
}

void Outgoing::copy(const PacketContent& content, TimePoint now) {
  context_.now = now;
  for (const auto& [id, bytes] : content.ranges) {
    if (id == kControlStream) continue;
    const Stream* stream = streams_.find(id);
    if (stream && SecondCopies::worth_it(stream->writer().output().sending())) copies_.add(id, bytes);
  }
}

std::optional<Outgoing::NextStream> Outgoing::next_stream(CarrierId carrier) {
  static const config::Features kOfNone;
  const auto features = [](const Stream& stream) -> const config::Features& {
    return stream.begun() ? stream.request().features : kOfNone;
  };
  const Lanes lanes = carriers_.lanes_of(carrier);
  while (auto id = scheduler_.next(lanes)) {
    if (const Stream* stream = streams_.find(*id))
      return NextStream{scheduler_.interactive_next(lanes) ? StreamClass::interactive : StreamClass::bulk,
                        features(*stream)};
    // The stream was forgotten while it waited. If its entry stayed, it would block packets for interactive
    // streams alone.
    scheduler_.take(lanes);
  }
  const auto place = place_for_helper(carrier);
  if (!place) return std::nullopt;
  return NextStream{StreamClass::bulk, features(*streams_.find(*scheduler_.bulk_at(*place)))};
}

// Returns false if the next frame must wait for another packet.
bool Outgoing::fill_control(std::size_t end, Buffer& out, PacketContent& content) {
  if (control_taken_ == control_frames_.size()) {
    control_frames_.clear();
    control_taken_ = 0;
    if (!due_.any()) return true;
    due_.write(control_frames_);
  }
  while (control_taken_ < control_frames_.size()) {
    Bytes rest = Bytes(control_frames_).subspan(control_taken_);
    Bytes frame = rest.first(**frame_size(rest));
    if (frame.size() > end - out.size()) return false;
    append(out, frame);
    control_taken_ += frame.size();
    // A late PING measures nothing, and the next one is due soon.
    auto type = static_cast<FrameType>(frame.front());
    if (type != FrameType::ping && type != FrameType::pong) append(content.control, frame);
  }
  return true;
}

bool Outgoing::fill_chunk(SendStream& sending, StreamId id, CarrierId carrier, std::size_t end, Buffer& out,
                          PacketContent& content) {
  auto range = sending.next(kMaxStreamPayload);
  if (!range) return true;
  if (!fill_range(sending, id, *range, end, out, content)) return false;
  sending.on_sent(*range, carrier);
  return true;
}

// Sends as much of the range as fits, and shortens it to that. Returns false if too little fits.
bool Outgoing::fill_range(const SendStream& sending, StreamId id, StreamRange& range, std::size_t end,
                          Buffer& out, PacketContent& content) {
  const std::size_t room = end - out.size();
  const std::uint64_t whole = range.size();
  // The head of a part is never longer than that of a frame as large as the room.
  const std::size_t head =
      stream_head_size(id, range.begin, std::min<std::size_t>(room, static_cast<std::size_t>(whole)));
  if (head + std::min<std::uint64_t>(kMinPayload, whole) > room) return false;
  range.end = range.begin + std::min<std::uint64_t>(whole, room - head);
  write_stream_head(id, range.begin, static_cast<std::size_t>(range.size()), out);
  sending.copy(range, out);
  content.ranges.push_back({id, range});
  return true;
}

void Outgoing::on_lost(CarrierId carrier, const PacketContent& content, TimePoint now) {
  context_.now = now;
  append(control_frames_, content.control);
  for (const auto& [id, bytes] : content.ranges) {
    if (id == kControlStream) {
      control_.sending().on_lost(bytes, carrier);
    } else if (Stream* stream = streams_.find(id)) {
      StreamOutput& output = stream->writer().output();
      output.sending().on_lost(bytes, carrier);
      if (output.sending().wants_to_send()) wants_to_send(stream->entry(), output, Turn::first);
    }
  }
}

void Outgoing::on_arrived(const PacketContent& content) {
  for (const auto& [id, bytes] : content.ranges) {
    if (id == kControlStream) {
      control_.sending().on_arrived(bytes);
    } else if (Stream* stream = streams_.find(id)) {
      stream->writer().output().sending().on_arrived(bytes);
    }
  }
}

void Outgoing::set_line_rate(std::uint64_t bytes_per_second) {
  constexpr auto kFirstBlock = std::chrono::duration<double>(std::chrono::milliseconds(1));
  line_rate_ = bytes_per_second;
  const double carried = kFirstBlock.count() * static_cast<double>(bytes_per_second);
  context_.first_block_bytes = std::clamp(static_cast<std::size_t>(std::min(carried, 1e9)),
                                          StreamContext::kMinFirstBlock, kMaxBlockPlainBytes);
  if (context_.codec) context_.codec->set_line_rate(bytes_per_second);
}

void Outgoing::wants_to_send(StreamEntry& stream, const StreamOutput& output, Turn turn) {
  if (std::exchange(stream.queued, true)) return;
  const config::PathPolicy policy = carriers_.policy_for(stream.paths);
  if (stream.paths != config::PathUse::automatic) asked_at_[static_cast<std::size_t>(policy)] = context_.now;
  const StreamClass stream_class = output.stream_class(context_.now);
  if (turn == Turn::first) {
    scheduler_.add_first(stream.id, stream_class, policy);
  } else {
    scheduler_.add(stream.id, stream_class, policy);
  }
}

}  // namespace longhaul::link
