// SPDX-License-Identifier: Apache-2.0
// The session's input for a stream: wire bytes, records, blocks that may have to wait, and the fate of sent
// data.
#include "proxy/link/stream.h"

namespace longhaul::link {

Result<void> Stream::on_frame(std::uint64_t offset, Bytes payload, TimePoint now) {
  received_at_ = now;
  // How much credit a stream's wire bytes use is not known before they are parsed, so waiting bytes are
  // bounded for all streams together: no honest peer sends more ahead than its credit.
  const std::uint64_t most = context_.owner.waiting_allowance(), before = receiving_.waiting_cost();
  std::uint64_t in_order = receiving_.contiguous();
  std::uint64_t room = most > context_.waiting_cost ? most - context_.waiting_cost : 0;
  auto taken = receiving_.insert(offset, payload, room, [this](Bytes fresh) -> Result<void> {
    // The rest of a stream that is no longer read is acknowledged and dropped.
    if (discarding_) return {};
    if (parked_) return park(fresh);
    auto rest = parser_.feed(fresh, *this);
    if (!rest) return rest.error();
    return park(*rest);
  });
  count_waiting();
  if (taken && context_.waiting_cost > most) taken = LinkError::too_fragmented;
  bool moved = receiving_.contiguous() != in_order;
  if (before && moved && receive_credit_) receive_credit_->on_stall(now - stalled_since_);
  if (receiving_.waiting_cost() && (moved || !before)) stalled_since_ = now;
  return taken;
}

// Like bytes behind gaps: it is not known yet how much credit they use.
Result<void> Stream::park(Bytes wire) {
  if (wire.empty() || discarding_) return {};
  if (!parked_) parked_ = std::make_unique<Parked>();
  parked_->behind.push_copy(wire);
  if (!waits_for_block()) context_.owner.reads_later(*this);
  return {};
}

void Stream::count_waiting() {
  std::uint64_t waiting = receiving_.waiting_cost() + parser_.held_bytes();
  if (parked_) waiting += parked_->block.size() + parked_->behind.size();
  context_.waiting_cost += waiting - std::exchange(counted_waiting_, waiting);
}

Result<void> Stream::resume(TimePoint now) {
  if (!waits_for_block()) return {};
  received_at_ = now;
  Slice block = parked_->block;
  if (!decode(*parse_block(block.bytes()))) return {};
  if (parked_) parked_->block = {};
  return read_on(now);
}

Result<void> Stream::read_on(TimePoint now) {
  received_at_ = now;
  Result<void> result;
  while (parked_ && !waits() && !parked_->behind.empty()) {
    Slice piece = parked_->behind.front();
    auto rest = parser_.feed(piece.bytes(), *this);
    if (!rest) {
      result = rest.error();
      break;
    }
    // If the stream is no longer read, nothing is parked.
    if (parked_) parked_->behind.drop_until(parked_->behind.begin_offset() + piece.size() - rest->size());
  }
  if (parked_ && !waits_for_block()) {
    if (parked_->behind.empty()) {
      parked_.reset();
    } else {
      context_.owner.reads_later(*this);
    }
  }
  count_waiting();
  return result;
}

void Stream::deliver(Slice plain) {
  readable_.push(std::move(plain));
  context_.owner.tell(*this, EventKind::readable);
}

Result<void> Stream::on_data(Bytes plain) {
  if (discarding_) return {};
  if (!request_ || !receive_credit_ || read_state_ != ReadState::open) return LinkError::malformed_record;
  if (opened_here_ && !answer_) return LinkError::malformed_record;
  if (auto within = receive_credit_->on_received(plain.size(), received_at_); !within) return within;
  readable_.push_copy(plain);
  context_.owner.tell(*this, EventKind::readable);
  return {};
}

Result<void> Stream::on_record(RecordType type, Bytes body) {
  if (discarding_) return {};
  // The opener's first record is OPEN, the other side's is ANSWER; only the end may come before.
  bool begun = opened_here_ ? answer_.has_value() : request_ != nullptr;
  if (type == RecordType::open) return opened_here_ || begun ? LinkError::malformed_record : on_open(body);
  if (type == RecordType::answer) {
    if (!opened_here_ || begun) return LinkError::malformed_record;
    auto parsed = parse_answer(body);
    if (!parsed) return parsed.error();
    answer_ = *parsed;
    context_.owner.tell(*this, EventKind::answered);
    return {};
  }
  bool over = type == RecordType::end || type == RecordType::abort;
  if (!begun && !(over && opened_here_)) return LinkError::malformed_record;
  switch (type) {
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
  request_ = std::make_unique<OpenRequest>(std::move(*parsed));
  std::uint64_t floor = context_.pool.floor_bytes();
  std::uint64_t forward = request_->forward_credit;
  if (auto taken = context_.owner.take_open_credit(forward > floor ? forward - floor : 0); !taken)
    return taken;
  if (!context_.owner.admits(*this)) {
    reset(ResetCode::aborted);
    marks.released = true;
    return {};
  }
  receive_credit_.emplace(context_.pool, context_.credit, forward, request_->features.window_bytes);
  if (receive_credit_->open_up(received_at_)) context_.owner.announce_credit(*this);
  send_credit_ = SendCredit(request_->reverse_credit);
  context_.owner.tell(*this, EventKind::opened);
  if (send_state_ == SendState::reset) context_.owner.tell(*this, EventKind::stopped);
  return {};
}

Result<void> Stream::on_block(Bytes body) {
  auto block = parse_block(body);
  if (!block) return block.error();
  if (auto within = receive_credit_->on_received(block->header.plain_bytes, received_at_); !within)
    return within;
  if (decode(*block)) return {};
  if (!parked_) parked_ = std::make_unique<Parked>();
  parked_->block = Slice::copy_of(body);
  return {};
}

// False: not yet.
bool Stream::decode(const ParsedBlock& block) {
  if (context_.codec) {
    known_to_codec_ = true;
    auto plain = context_.codec->decode(id_.number(), block.header, block.encoded);
    if (plain && !*plain) return false;
    if (plain && (*plain)->size() == block.header.plain_bytes) {
      blocks_.in += {.blocks = 1,
                     .plain = block.header.plain_bytes,
                     .deduped = context_.codec->last_decoded().after_dedup_bytes,
                     .encoded = block.encoded.size()};
      deliver(std::move(**plain));
      return true;
    }
  }
  // Wrong bytes are never delivered: the flow ends here, the session goes on.
  reset(ResetCode::undecodable);
  context_.owner.tell(*this, EventKind::reset);
  return true;
}

Result<void> Stream::on_message(Bytes body) {
  if (auto within = receive_credit_->on_received(message_cost(body.size()), received_at_); !within)
    return within;
  messages_.push_back({readable_.end_offset(), Slice::copy_of(body)});
  context_.owner.tell(*this, EventKind::readable);
  return {};
}

void Stream::finish_reading(ReadState state) {
  read_state_ = state;
  receive_credit_->finish();
  if (state == ReadState::aborted) {
    // The peer's connection has ended: our remaining data has no reader. The data that it sent before is
    // delivered first.
    drop_unsent();
    stop_encoding();
    send_state_ = SendState::reset;
    reset_code_ = ResetCode::connection_reset;
  }
  context_.owner.tell(*this, EventKind::readable);
}

void Stream::on_acknowledged(std::uint64_t offset) {
  context_.retained.remove(sending_.on_acknowledged(offset));
  tell_if_writable();
}

void Stream::on_carriers_left(std::span<const CarrierId> carriers) {
  sending_.on_carriers_left(carriers);
  // The peer may have forgotten this stream, and may have sent its last acknowledgement on a lost carrier.
  if (send_state_ != SendState::open) sending_.repeat_last_byte();
  if (wants_to_send()) context_.owner.wants_to_send(*this);
}

SendCredit::Outcome Stream::on_credit(std::uint64_t generation, std::uint64_t limit) {
  auto outcome = send_credit_.on_credit(generation, limit);
  if (outcome.raised) tell_if_writable();
  return outcome;
}

void Stream::on_reset(ResetCode code) {
  drop_unsent();
  send_state_ = SendState::reset;
  // This side's own remaining data must still be sent as intended.
  if (!marks.reset_pending) reset_code_ = code;
  if (code == ResetCode::no_reader) {
    // A stream that was aborted here has no reader either: then both directions are over.
    stop_encoding();
    if (discarding_) {
      read_state_ = ReadState::reset;
    } else {
      context_.owner.tell(*this, EventKind::stopped);
    }
    return;
  }
  forget_in_codec();
  if (read_state_ == ReadState::reset) return;
  read_state_ = ReadState::reset;
  stop_reading();
  context_.owner.tell(*this, EventKind::reset);
}

}  // namespace longhaul::link
