// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_writer.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace longhaul::link {
namespace {

// Larger reads become several records, so that a record's memory is released as the peer acknowledges it.
constexpr std::size_t kMaxDataRecord = 64 * 1024;
// A smaller slice is copied, because it may be part of a much larger one.
constexpr std::size_t kKeptPlain = 16 * 1024;

}  // namespace

// -------------------------------------------------------------------------------------------------- bytes

void StreamWriter::append(Slice wire) {
  output_.append(std::move(wire));
  announce();
}

void StreamWriter::append_record(RecordType type, Bytes body) {
  Buffer head;
  write_record_head(type, body.size(), head);
  append(Slice::joined(head, body));
}

std::size_t StreamWriter::may_write() const {
  if (!is_open()) return 0;
  const std::uint64_t room = std::min(credit_.available(), output_.room());
  if (room == 0) starved_ = true;
  return static_cast<std::size_t>(room);
}

void StreamWriter::write(Bytes plain, bool isolated) {
  if (!is_open() || plain.empty()) return;
  credit_.on_sent(plain.size());
  if (output_.makes_blocks()) {
    output_.write(plain, isolated);
    return announce();
  }
  while (!plain.empty()) {
    Bytes piece = plain.first(std::min(plain.size(), kMaxDataRecord));
    plain = plain.subspan(piece.size());
    append_record(RecordType::data, piece);
  }
}

void StreamWriter::write(Slice plain, bool isolated) {
  if (plain.size() < kKeptPlain) return write(plain.bytes(), isolated);
  if (!is_open()) return;
  credit_.on_sent(plain.size());
  if (output_.makes_blocks()) {
    output_.write(std::move(plain), isolated);
    return announce();
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

void StreamWriter::write_in_place(Slice wire, std::byte* memory, std::size_t plain_bytes) {
  if (!is_open() || plain_bytes == 0) return;
  credit_.on_sent(plain_bytes);
  if (output_.makes_blocks()) {
    output_.write(wire.sub(kRecordRoom, plain_bytes));
    return announce();
  }
  Buffer head;
  write_record_head(RecordType::data, plain_bytes, head);
  assert(head.size() <= kRecordRoom);
  std::memcpy(memory + kRecordRoom - head.size(), head.data(), head.size());
  append(wire.sub(kRecordRoom - head.size(), head.size() + plain_bytes));
}

void StreamWriter::write_message(Bytes message) {
  if (!is_open()) return;
  credit_.on_sent(message_cost(message.size()));
  append_record(RecordType::module, message);
}

void StreamWriter::tell_if_writable() {
  // Waking a flow for a few bytes costs more than it gains; half of the backlog is soon enough.
  if (!starved_ || output_.unsent_bytes() > output_.unsent_limit() / 2) return;
  if (may_write() == 0) return;
  starved_ = false;
  context_.owner.tell(entry_, EventKind::writable);
}

// ------------------------------------------------------------------------------------ beginning and end

void StreamWriter::open(Bytes request, std::uint64_t credit, std::uint64_t open_credit) {
  credit_ = SendCredit(credit);
  open_credit_ = open_credit;
  append_record(RecordType::open, request);
  open_end_ = output_.sending().end_offset();
}

void StreamWriter::end() {
  if (!is_open()) return;
  state_ = WriteState::ended;
  append_record(RecordType::end, {});
}

void StreamWriter::abort() {
  state_ = WriteState::aborted;
  append_record(RecordType::abort, {});
}

void StreamWriter::drop() {
  state_ = WriteState::reset;
  output_.drop();
}

// Data given to a carrier may have arrived, whatever happened to the carrier since: a missing acknowledgement
// proves nothing. Both a peer whose line was cut and one that failed a moment later may have passed the first
// bytes to the server on arrival. So only data that no carrier got can be taken back.
std::optional<Buffer> StreamWriter::take_back() {
  return is_open() ? output_.take_back(open_end_) : std::nullopt;
}

bool StreamWriter::is_complete() const {
  return state_ == WriteState::reset || (!is_open() && output_.all_acknowledged());
}

// --------------------------------------------------------------------------------------- fate of sent data

void StreamWriter::on_acknowledged(StreamOffset offset) {
  output_.on_acknowledged(offset);
  tell_if_writable();
}

void StreamWriter::on_carriers_left(std::span<const CarrierId> carriers) {
  SendStream& sending = output_.sending();
  sending.on_carriers_left(carriers);
  // The peer may have forgotten this stream, and may have sent its last acknowledgement on a lost carrier.
  if (!is_open()) sending.repeat_last_byte();
  if (output_.wants_to_send()) announce();
}

SendCredit::Outcome StreamWriter::on_credit(std::uint64_t generation, std::uint64_t limit) {
  auto outcome = credit_.on_credit(generation, limit);
  if (outcome.raised) tell_if_writable();
  return outcome;
}

}  // namespace longhaul::link
