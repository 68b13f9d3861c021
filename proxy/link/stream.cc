// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream.h"

namespace longhaul::link {
namespace {

// Larger reads become several records, so that a record's memory is given back as the peer acknowledges it.
constexpr std::size_t kMaxDataRecord = 64 * 1024;

bool wants_blocks(const config::Features& features) {
  return features.compression || features.dedup_memory || features.dedup_disk;
}

ReductionStages stages_of(const config::Features& features) {
  return {.dedup_memory = features.dedup_memory,
          .dedup_disk = features.dedup_disk,
          .compression = features.compression};
}

}  // namespace

Stream::Stream(StreamId id, StreamContext& context)
    : id_(id), context_(context), opened_here_(false), send_credit_(0) {}

Stream::Stream(StreamId id, StreamContext& context, OpenRequest request, std::uint64_t send_credit,
               std::uint64_t open_credit)
    : id_(id),
      context_(context),
      request_(std::make_unique<OpenRequest>(std::move(request))),
      opened_here_(true),
      send_credit_(send_credit),
      open_credit_(open_credit) {
  receive_credit_.emplace(context_.pool,
                          ReceiveCredit::initial_grant(context_.pool, request_->features.window_bytes),
                          request_->features.window_bytes);
  request_->forward_credit = send_credit;
  request_->reverse_credit = receive_credit_->announced_limit();
  Buffer body;
  write_open(*request_, body);
  append_record(RecordType::open, body);
}

Stream::~Stream() {
  context_.retained.remove(sending_.retained_bytes());
  context_.waiting_cost -= receiving_.waiting_cost();
}

// ---------------------------------------------------------------------------------------------- the flow
// writes

void Stream::append(Slice wire) {
  context_.retained.add(wire.size());
  sending_.append(std::move(wire));
  context_.owner.wants_to_send(*this);
}

void Stream::append_record(RecordType type, Bytes body) {
  Buffer head;
  write_record_head(type, body.size(), head);
  append(Slice::joined(head, body));
}

void Stream::give_answer(const OpenAnswer& answer) {
  if (send_state_ != SendState::open) return;
  answer_ = answer;
  Buffer body;
  write_answer(answer, body);
  append_record(RecordType::answer, body);
}

std::size_t Stream::may_write() const {
  if (send_state_ != SendState::open) return 0;
  std::uint64_t room = send_credit_.available();
  std::size_t unsent = sending_.unsent_bytes();
  room = std::min<std::uint64_t>(room, unsent < context_.unsent_limit ? context_.unsent_limit - unsent : 0);
  room = std::min(room, context_.retained.allowance(sending_.retained_bytes()));
  if (room == 0) starved_ = true;
  return static_cast<std::size_t>(room);
}

void Stream::write(Bytes plain) {
  if (send_state_ != SendState::open || plain.empty()) return;
  send_credit_.on_sent(plain.size());
  bool blocks = context_.codec && wants_blocks(request_->features);
  while (!plain.empty()) {
    Bytes piece = plain.first(std::min(plain.size(), blocks ? kMaxBlockPlainBytes : kMaxDataRecord));
    plain = plain.subspan(piece.size());
    Buffer encoded;
    if (auto header = blocks ? context_.codec->encode(id_, stages_of(request_->features), piece, encoded)
                             : std::nullopt) {
      Buffer body;
      write_block_header(*header, body);
      longhaul::append(body, encoded);
      append_record(RecordType::block, body);
    } else {
      append_record(RecordType::data, piece);
    }
  }
}

void Stream::write_in_place(Slice wire, std::byte* memory, std::size_t plain_bytes) {
  Bytes plain{memory + kRecordRoom, plain_bytes};
  if (context_.codec && wants_blocks(request_->features)) return write(plain);
  if (send_state_ != SendState::open || plain.empty()) return;
  send_credit_.on_sent(plain_bytes);
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
    // Our direction is over and stays as it is; the peer only has to know that nobody reads its own.
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

// What the peer still sends is taken and thrown away.
void Stream::stop_reading() {
  readable_.drop_until(readable_.end_offset());
  messages_ = {};
  first_message_ = 0;
  receive_credit_.reset();
  discarding_ = true;
}

void Stream::reset(ResetCode code) {
  // Where both directions are over already there is nothing that the peer does not know.
  bool known = send_state_ == SendState::reset && read_state_ != ReadState::open;
  send_state_ = SendState::reset;
  read_state_ = ReadState::reset;
  context_.retained.remove(sending_.clear());
  stop_reading();
  if (!known) tell_reset(code);
}

// ----------------------------------------------------------------------------------------------- the flow
// reads

void Stream::consume(std::size_t bytes, TimePoint now, Duration rtt) {
  readable_.drop_until(readable_.begin_offset() + bytes);
  if (receive_credit_ && receive_credit_->on_consumed(bytes, now, rtt) && read_state_ == ReadState::open)
    context_.owner.announce_credit(*this);
}

std::optional<Slice> Stream::poll_message(TimePoint now, Duration rtt) {
  if (first_message_ == messages_.size() || messages_[first_message_].position > readable_.begin_offset())
    return std::nullopt;
  Slice body = std::move(messages_[first_message_++].body);
  if (first_message_ == messages_.size()) {
    messages_ = {};
    first_message_ = 0;
  } else if (first_message_ >= 64 && first_message_ > messages_.size() / 2) {
    messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(first_message_));
    first_message_ = 0;
  }
  // Until now it took memory, so its credit was not free.
  if (receive_credit_ && receive_credit_->on_consumed(message_cost(body.size()), now, rtt) &&
      read_state_ == ReadState::open)
    context_.owner.announce_credit(*this);
  return body;
}

std::size_t Stream::readable_before_message() const {
  if (first_message_ == messages_.size()) return readable_.size();
  std::uint64_t position = messages_[first_message_].position;
  return position <= readable_.begin_offset() ? 0
                                              : static_cast<std::size_t>(position - readable_.begin_offset());
}

// ------------------------------------------------------------------------------------------- the session
// brings

Result<void> Stream::on_frame(std::uint64_t offset, Bytes payload, TimePoint now) {
  received_at_ = now;
  // How many wire bytes a stream's credit amounts to is not known before they are read, so what waits for
  // gaps is bounded for all streams together: no honest peer sends more than the cap ahead.
  std::uint64_t cap = context_.pool.cap_bytes(), before = receiving_.waiting_cost();
  std::uint64_t in_order = receiving_.contiguous();
  std::uint64_t room = cap > context_.waiting_cost ? cap - context_.waiting_cost : 0;
  auto taken = receiving_.insert(offset, payload, room, [this](Bytes fresh) -> Result<void> {
    // The rest of a stream that nobody reads is acknowledged and dropped.
    if (discarding_) return {};
    return parser_.feed(fresh, *this);
  });
  context_.waiting_cost += receiving_.waiting_cost() - before;
  bool moved = receiving_.contiguous() != in_order;
  if (before && moved && receive_credit_) receive_credit_->on_stall(now - stalled_since_);
  if (receiving_.waiting_cost() && (moved || !before)) stalled_since_ = now;
  return taken;
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
  // The opener's first record is OPEN, the other side's is ANSWER; nothing stands before them but the end.
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
  auto parsed = parse_open(body);
  if (!parsed) return parsed.error();
  request_ = std::make_unique<OpenRequest>(std::move(*parsed));
  std::uint64_t floor = context_.pool.floor_bytes();
  std::uint64_t forward = request_->forward_credit;
  if (auto taken = context_.owner.take_open_credit(forward > floor ? forward - floor : 0); !taken)
    return taken;
  if (!context_.owner.admits_another()) {
    reset(ResetCode::aborted);
    marks.released = true;
    return {};
  }
  receive_credit_.emplace(context_.pool, forward, request_->features.window_bytes);
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
  if (context_.codec) {
    auto plain = context_.codec->decode(id_, block->header, block->encoded);
    if (plain && *plain && (*plain)->size() == block->header.plain_bytes) {
      deliver(std::move(**plain));
      return {};
    }
  }
  // Wrong bytes are never delivered: the flow ends here, the session goes on.
  reset(ResetCode::undecodable);
  context_.owner.tell(*this, EventKind::reset);
  return {};
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
    // The peer's connection is gone: what we would still send has no reader. What it sent before is delivered
    // first.
    context_.retained.remove(sending_.clear());
    send_state_ = SendState::reset;
    reset_code_ = ResetCode::connection_reset;
  }
  context_.owner.tell(*this, EventKind::readable);
}

void Stream::on_acknowledged(std::uint64_t offset) {
  context_.retained.remove(sending_.on_acknowledged(offset));
  tell_if_writable();
}

void Stream::on_carrier_lost(CarrierId carrier, bool others) {
  sending_.on_carrier_lost(carrier);
  // The peer may have forgotten this stream, and with it that its last acknowledgement went that way.
  if (others && send_state_ != SendState::open) sending_.repeat_last_byte();
  if (sending_.wants_to_send()) context_.owner.wants_to_send(*this);
}

SendCredit::Outcome Stream::on_credit(std::uint64_t generation, std::uint64_t limit) {
  auto outcome = send_credit_.on_credit(generation, limit);
  if (outcome.raised) tell_if_writable();
  return outcome;
}

void Stream::on_reset(ResetCode code) {
  context_.retained.remove(sending_.clear());
  send_state_ = SendState::reset;
  // What this side has to say itself must still be said as it was meant.
  if (!marks.reset_pending) reset_code_ = code;
  if (code == ResetCode::no_reader) {
    // A stream that was aborted here has no reader either: then both directions are over.
    if (discarding_) {
      read_state_ = ReadState::reset;
    } else {
      context_.owner.tell(*this, EventKind::stopped);
    }
    return;
  }
  if (read_state_ == ReadState::reset) return;
  read_state_ = ReadState::reset;
  stop_reading();
  context_.owner.tell(*this, EventKind::reset);
}

bool Stream::finished() const {
  if (marks.reset_pending) return false;
  // Once an ABORT is acknowledged the peer has stopped sending.
  bool sending_done =
      send_state_ == SendState::reset || (send_state_ != SendState::open && sending_.all_acknowledged());
  return sending_done && (read_state_ != ReadState::open || send_state_ == SendState::aborted);
}

void Stream::tell_if_writable() {
  // Waking a flow for a few bytes costs more than it brings; half of the backlog is soon enough.
  if (!starved_ || sending_.unsent_bytes() > context_.unsent_limit / 2) return;
  if (may_write() == 0) return;
  starved_ = false;
  context_.owner.tell(*this, EventKind::writable);
}

}  // namespace longhaul::link
