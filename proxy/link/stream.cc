// SPDX-License-Identifier: Apache-2.0
// The flow's operations on its stream. stream_receive.cc handles the peer's frames.
#include "proxy/link/stream.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace longhaul::link {
namespace {

// Larger reads become several records, so that a record's memory is given back as the peer acknowledges it.
constexpr std::size_t kMaxDataRecord = 64 * 1024;
// A smaller slice is copied, because it may be part of a much larger one.
constexpr std::size_t kKeptPlain = 16 * 1024;

}  // namespace

Stream::Stream(StreamId id, StreamContext& context)
    : id_(id),
      context_(context),
      blocks_(id, context.codec),
      output_(context, blocks_),
      send_credit_(0),
      input_(context) {}

Stream::Stream(StreamId id, StreamContext& context, OpenRequest request, std::uint64_t send_credit,
               std::uint64_t open_credit)
    : id_(id),
      context_(context),
      opening_(std::move(request)),
      blocks_(id, context.codec),
      output_(context, blocks_),
      send_credit_(send_credit),
      open_credit_(open_credit),
      input_(context) {
  OpenRequest& open = opening_.request();
  const std::uint64_t window = open.features.window_bytes;
  const ReceiveCredit& credit = inbox_.open(context_.pool, context_.credit,
                                            ReceiveCredit::initial_grant(context_.pool, window), window);
  open.forward_credit = send_credit;
  open.reverse_credit = credit.announced_limit();
  output_.use(open.features);
  Buffer body;
  write_open(open, body);
  append_record(RecordType::open, body);
  open_end_ = output_.sending().end_offset();
}

void Stream::use_features(const config::Features& features) {
  opening_.request().features = features;
  output_.use(features);
}

// ---------------------------------------------------------------------------------------------- the flow
// writes

void Stream::append(Slice wire) {
  output_.append(std::move(wire));
  context_.owner.wants_to_send(*this);
}

void Stream::append_record(RecordType type, Bytes body) {
  Buffer head;
  write_record_head(type, body.size(), head);
  append(Slice::joined(head, body));
}

void Stream::give_answer(const OpenAnswer& answer) {
  if (send_state_ != SendState::open) return;
  opening_.on_answer(answer);
  Buffer body;
  write_answer(answer, body);
  append_record(RecordType::answer, body);
}

std::size_t Stream::may_write() const {
  if (send_state_ != SendState::open) return 0;
  const std::uint64_t room = std::min(send_credit_.available(), output_.room());
  if (room == 0) starved_ = true;
  return static_cast<std::size_t>(room);
}

void Stream::write(Bytes plain) {
  if (send_state_ != SendState::open || plain.empty()) return;
  send_credit_.on_sent(plain.size());
  if (output_.makes_blocks()) {
    output_.write(plain);
    return context_.owner.wants_to_send(*this);
  }
  while (!plain.empty()) {
    Bytes piece = plain.first(std::min(plain.size(), kMaxDataRecord));
    plain = plain.subspan(piece.size());
    append_record(RecordType::data, piece);
  }
}

void Stream::write(Slice plain) {
  if (plain.size() < kKeptPlain) return write(plain.bytes());
  if (send_state_ != SendState::open) return;
  send_credit_.on_sent(plain.size());
  if (output_.makes_blocks()) {
    output_.write(std::move(plain));
    return context_.owner.wants_to_send(*this);
  }
  while (!plain.empty()) {
    const std::size_t size = std::min(plain.size(), kMaxDataRecord);
    Buffer head;
    write_record_head(RecordType::data, size, head);
    append(Slice::copy_of(head));
    append(plain.sub(0, size));
    plain = plain.from(size);
  }
}

void Stream::write_in_place(Slice wire, std::byte* memory, std::size_t plain_bytes) {
  if (send_state_ != SendState::open || plain_bytes == 0) return;
  send_credit_.on_sent(plain_bytes);
  if (output_.makes_blocks()) {
    output_.write(wire.sub(kRecordRoom, plain_bytes));
    return context_.owner.wants_to_send(*this);
  }
  Buffer head;
  write_record_head(RecordType::data, plain_bytes, head);
  assert(head.size() <= kRecordRoom);
  std::memcpy(memory + kRecordRoom - head.size(), head.data(), head.size());
  append(wire.sub(kRecordRoom - head.size(), head.size() + plain_bytes));
}

void Stream::write_message(Bytes message) {
  if (send_state_ != SendState::open) return;
  send_credit_.on_sent(message_cost(message.size()));
  append_record(RecordType::module, message);
}

void Stream::tell_if_writable() {
  // Waking a flow for a few bytes costs more than it gains; half of the backlog is soon enough.
  if (!starved_ || output_.unsent_bytes() > output_.unsent_limit() / 2) return;
  if (may_write() == 0) return;
  starved_ = false;
  context_.owner.tell(*this, EventKind::writable);
}

// ----------------------------------------------------------------------------------------------- the flow
// reads

void Stream::consume(std::size_t bytes, TimePoint now, Duration rtt) {
  announce_credit_if(inbox_.consume(bytes, now, rtt));
}

std::optional<Slice> Stream::poll_message(TimePoint now, Duration rtt) {
  std::optional<Slice> body = inbox_.poll_message();
  // Until now it used memory, so its credit was not free.
  if (body) announce_credit_if(inbox_.on_message_taken(*body, now, rtt));
  return body;
}

void Stream::announce_credit_if(bool is_due) {
  if (is_due && read_state_ == ReadState::open) context_.owner.announce_credit(*this);
}

// ----------------------------------------------------------------------------------------------- the flow
// ends

void Stream::stop_sending(SendState state) {
  send_state_ = state;
  append_record(state == SendState::ended ? RecordType::end : RecordType::abort, {});
}

void Stream::end() {
  if (send_state_ == SendState::open) stop_sending(SendState::ended);
}

void Stream::abort() {
  if (send_state_ == SendState::open) {
    stop_sending(SendState::aborted);
    stop_reading();
  } else if (send_state_ != SendState::aborted && read_state_ == ReadState::open) {
    // Our direction has ended and stays valid; the peer only needs to know that its own has no reader.
    stop_reading();
    read_state_ = ReadState::reset;
    tell_reset(ResetCode::no_reader);
  }
}

void Stream::tell_reset(ResetCode code) {
  reset_code_ = code;
  marks.reset_pending = true;
  context_.owner.announce_reset(*this);
}

void Stream::stop_reading() {
  inbox_.close();
  input_.discard();
}

void Stream::reset(ResetCode code) {
  // If both directions have ended the peer knows everything already.
  bool known = send_state_ == SendState::reset && read_state_ != ReadState::open;
  send_state_ = SendState::reset;
  read_state_ = ReadState::reset;
  output_.drop();
  stop_reading();
  blocks_.forget();
  if (!known) tell_reset(code);
}

// Data given to a carrier may have arrived, whatever happened to the carrier since: a missing acknowledgement
// proves nothing. A peer behind a line that was cut, and one that died a moment later, both gave the first
// bytes to the server as soon as they had them. So only data that no carrier got can be taken back.
std::optional<Buffer> Stream::take_back() {
  if (!opening_.opened_here() || answer() || send_state_ != SendState::open) return std::nullopt;
  auto written = output_.take_back(open_end_);
  if (written) reset(ResetCode::aborted);
  return written;
}

bool Stream::may_finish() const {
  return send_state_ != SendState::open &&
         (read_state_ != ReadState::open || send_state_ == SendState::aborted) &&
         (readable().empty() || send_state_ == SendState::reset);
}

bool Stream::finished() const {
  if (marks.reset_pending) return false;
  // Once an ABORT is acknowledged the peer has stopped sending.
  const bool sending_done =
      send_state_ == SendState::reset || (send_state_ != SendState::open && output_.all_acknowledged());
  return sending_done && (read_state_ != ReadState::open || send_state_ == SendState::aborted);
}

}  // namespace longhaul::link
