// SPDX-License-Identifier: Apache-2.0
// What the peer's frames do to a stream: the meaning of each record, and the fate of sent data.
#include "proxy/link/stream.h"

namespace longhaul::link {

Result<void> Stream::on_frame(std::uint64_t offset, Bytes payload, TimePoint now) {
  received_at_ = now;
  const auto stall = input_.take(offset, payload, now, *this);
  if (!stall) return stall.error();
  if (input_.has_unread()) context_.owner.reads_later(*this);
  if (*stall && receive_credit()) receive_credit()->on_stall(**stall);
  return {};
}

Result<void> Stream::resume(TimePoint now) {
  if (!input_.waits_for_block()) return {};
  received_at_ = now;
  const Slice block = input_.waiting_block();
  if (!decode(*parse_block(block.bytes()))) return {};
  input_.on_decoded();
  return read_on(now);
}

Result<void> Stream::read_on(TimePoint now) {
  received_at_ = now;
  const auto read = input_.read_on(*this);
  if (input_.has_unread()) context_.owner.reads_later(*this);
  return read;
}

// ------------------------------------------------------------------------------------------------- records

Result<void> Stream::on_data(Bytes plain) {
  if (input_.discards()) return {};
  if (!opening_.permits(RecordType::data) || !receive_credit() || read_state_ != ReadState::open)
    return LinkError::malformed_record;
  if (auto within = inbox_.add(plain, received_at_); !within) return within;
  context_.owner.tell(*this, EventKind::readable);
  return {};
}

Result<void> Stream::on_record(RecordType type, Bytes body) {
  if (input_.discards()) return {};
  if (!opening_.permits(type)) return LinkError::malformed_record;
  switch (type) {
    case RecordType::open:
      return on_open(body);
    case RecordType::answer:
      return on_answer(body);
    case RecordType::block:
      return on_block(body);
    case RecordType::module:
      return on_message(body);
    case RecordType::end:
      finish_reading(ReadState::ended);
      return {};
    case RecordType::abort:
      finish_reading(ReadState::aborted);
      return {};
    default:
      return LinkError::malformed_record;
  }
}

Result<void> Stream::on_open(Bytes body) {
  // A connection to the server is made.
  constexpr std::uint64_t kWorkPerOpen = 50'000;
  count_work(kWorkPerOpen);
  auto parsed = parse_open(body, context_.keys);
  if (!parsed) return parsed.error();
  opening_.on_open(std::move(*parsed));
  output_.use(request().features);
  const std::uint64_t floor = context_.pool.floor_bytes(), forward = request().forward_credit;
  if (auto taken = context_.owner.take_open_credit(forward > floor ? forward - floor : 0); !taken)
    return taken;
  if (!context_.owner.admits(*this)) {
    reset(ResetCode::aborted);
    marks.released = true;
    return {};
  }
  ReceiveCredit& credit =
      inbox_.open(context_.pool, context_.credit, forward, request().features.window_bytes);
  if (credit.open_up(received_at_)) context_.owner.announce_credit(*this);
  send_credit_ = SendCredit(request().reverse_credit);
  context_.owner.tell(*this, EventKind::opened);
  if (send_state_ == SendState::reset) context_.owner.tell(*this, EventKind::stopped);
  return {};
}

Result<void> Stream::on_answer(Bytes body) {
  auto parsed = parse_answer(body);
  if (!parsed) return parsed.error();
  opening_.on_answer(*parsed);
  context_.owner.tell(*this, EventKind::answered);
  return {};
}

Result<void> Stream::on_block(Bytes body) {
  auto block = parse_block(body);
  if (!block) return block.error();
  if (auto within = inbox_.charge(block->header.plain_bytes, received_at_); !within) return within;
  if (!decode(*block)) input_.wait_for(body);
  return {};
}

// False: not yet.
bool Stream::decode(const ParsedBlock& block) {
  auto plain = blocks_.decode(block);
  if (plain && !*plain) return false;
  if (plain) {
    inbox_.add(std::move(**plain));
    context_.owner.tell(*this, EventKind::readable);
    return true;
  }
  // Wrong bytes are never delivered: the flow ends here, the session goes on.
  reset(ResetCode::undecodable);
  context_.owner.tell(*this, EventKind::reset);
  return true;
}

Result<void> Stream::on_message(Bytes body) {
  if (auto within = inbox_.add_message(body, received_at_); !within) return within;
  context_.owner.tell(*this, EventKind::readable);
  return {};
}

void Stream::finish_reading(ReadState state) {
  read_state_ = state;
  receive_credit()->finish();
  if (state == ReadState::aborted) {
    // The peer's connection has ended: our remaining data has no reader. The data that it sent before is
    // delivered first.
    output_.drop();
    blocks_.stop_encoding();
    send_state_ = SendState::reset;
    reset_code_ = ResetCode::connection_reset;
  }
  context_.owner.tell(*this, EventKind::readable);
}

// --------------------------------------------------------------------------------------- fate of sent data

void Stream::on_acknowledged(std::uint64_t offset) {
  output_.on_acknowledged(offset);
  tell_if_writable();
}

void Stream::on_carriers_left(std::span<const CarrierId> carriers) {
  SendStream& sending = output_.sending();
  sending.on_carriers_left(carriers);
  // The peer may have forgotten this stream, and may have sent its last acknowledgement on a lost carrier.
  if (send_state_ != SendState::open) sending.repeat_last_byte();
  if (output_.wants_to_send()) context_.owner.wants_to_send(*this);
}

SendCredit::Outcome Stream::on_credit(std::uint64_t generation, std::uint64_t limit) {
  auto outcome = send_credit_.on_credit(generation, limit);
  if (outcome.raised) tell_if_writable();
  return outcome;
}

void Stream::on_reset(ResetCode code) {
  output_.drop();
  send_state_ = SendState::reset;
  // This side's own remaining data must still be sent as intended.
  if (!marks.reset_pending) reset_code_ = code;
  if (code == ResetCode::no_reader) {
    // A stream that was aborted here has no reader either: then both directions are over.
    blocks_.stop_encoding();
    if (input_.discards()) {
      read_state_ = ReadState::reset;
    } else {
      context_.owner.tell(*this, EventKind::stopped);
    }
    return;
  }
  blocks_.forget();
  if (read_state_ == ReadState::reset) return;
  read_state_ = ReadState::reset;
  stop_reading();
  context_.owner.tell(*this, EventKind::reset);
}

}  // namespace longhaul::link
