// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream.h"

namespace longhaul::link {
namespace {

// Larger reads become several records, so that a record's memory is given back as the peer acknowledges it.
constexpr std::size_t kMaxDataRecord = 64 * 1024;

bool wants_blocks(const config::Features& features) {
  return features.compression || features.dedup_memory || features.dedup_disk;
}

}  // namespace

Stream::Stream(StreamId id, StreamContext& context)
    : id_(id), context_(context), opened_here_(false), send_credit_(0) {}

Stream::Stream(StreamId id, StreamContext& context, OpenRequest request, std::uint64_t send_credit)
    : id_(id),
      context_(context),
      request_(std::make_unique<OpenRequest>(std::move(request))),
      opened_here_(true),
      send_credit_(send_credit) {
  receive_credit_.emplace(context_.pool,
                          ReceiveCredit::initial_grant(context_.pool, request_->features.window_bytes),
                          request_->features.window_bytes);
  request_->forward_credit = send_credit;
  request_->reverse_credit = receive_credit_->announced_limit();
  Buffer body;
  write_open(*request_, body);
  append_record(RecordType::open, body);
}

Stream::~Stream() { context_.retained.remove(sending_.retained_bytes()); }

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
    if (auto header = blocks ? context_.codec->encode(id_, piece, encoded) : std::nullopt) {
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
  send_credit_.on_sent(message.size());
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
  } else if (send_state_ == SendState::ended && read_state_ == ReadState::open) {
    // Our direction ended in order and stays as it is; the peer only has to know that nobody reads its own.
    stop_reading();
    read_state_ = ReadState::reset;
    reset_code_ = ResetCode::no_reader;
    marks.reset_pending = true;
    context_.owner.announce_reset(*this);
  }
}

// What the peer still sends is taken and thrown away.
void Stream::stop_reading() {
  readable_.drop_until(readable_.end_offset());
  messages_.clear();
  receive_credit_.reset();
  discarding_ = true;
}

void Stream::reset(ResetCode code) {
  if (send_state_ == SendState::reset) return;
  reset_code_ = code;
  send_state_ = SendState::reset;
  read_state_ = ReadState::reset;
  context_.retained.remove(sending_.clear());
  stop_reading();
  marks.reset_pending = true;
  context_.owner.announce_reset(*this);
}

// ----------------------------------------------------------------------------------------------- the flow
// reads

void Stream::consume(std::size_t bytes, TimePoint now, Duration rtt) {
  readable_.drop_until(readable_.begin_offset() + bytes);
  if (receive_credit_ && receive_credit_->on_consumed(bytes, now, rtt) && read_state_ == ReadState::open)
    context_.owner.announce_credit(*this);
}

std::optional<Slice> Stream::poll_message() {
  if (messages_.empty() || messages_.front().position != readable_.begin_offset()) return std::nullopt;
  Slice body = std::move(messages_.front().body);
  messages_.erase(messages_.begin());
  return body;
}

// ------------------------------------------------------------------------------------------- the session
// brings

std::uint64_t Stream::waiting_limit() const {
  // Wire bytes that may run ahead of a gap: the credit, and what records add to it. Before OPEN has come the
  // credit is not known; then the most that a new stream can have is the bound.
  std::uint64_t credit = receive_credit_ ? receive_credit_->outstanding() : CreditPool::kMaxInitial;
  return credit + credit / 8 + 2 * kMaxRecordBody;
}

Result<void> Stream::on_frame(std::uint64_t offset, Bytes payload, TimePoint now) {
  received_at_ = now;
  return receiving_.insert(offset, payload, waiting_limit(), [this](Bytes fresh) -> Result<void> {
    // The rest of a stream that nobody reads is acknowledged and dropped.
    if (discarding_) return {};
    return parser_.feed(fresh, *this);
  });
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
  deliver(Slice::copy_of(plain));
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
  if (!begun) return LinkError::malformed_record;
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
  receive_credit_.emplace(context_.pool, forward, request_->features.window_bytes);
  if (receive_credit_->open_up(received_at_)) context_.owner.announce_credit(*this);
  send_credit_ = SendCredit(request_->reverse_credit);
  context_.owner.tell(*this, EventKind::opened);
  return {};
}

Result<void> Stream::on_block(Bytes body) {
  auto block = parse_block(body);
  if (!block) return block.error();
  if (auto within = receive_credit_->on_received(block->header.plain_bytes, received_at_); !within)
    return within;
  if (context_.codec) {
    auto plain = context_.codec->decode(id_, block->header, block->encoded);
    if (plain && plain->size() == block->header.plain_bytes &&
        block_checksum(plain->bytes()) == block->header.checksum) {
      deliver(std::move(*plain));
      return {};
    }
  }
  // Wrong bytes are never delivered: the flow ends here, the session goes on.
  reset(ResetCode::undecodable);
  context_.owner.tell(*this, EventKind::reset);
  return {};
}

Result<void> Stream::on_message(Bytes body) {
  if (auto within = receive_credit_->on_received(body.size(), received_at_); !within) return within;
  // Messages are small and read at once: their credit is free again when they are handed on.
  if (receive_credit_->on_consumed(body.size(), received_at_, {})) context_.owner.announce_credit(*this);
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

void Stream::on_carrier_lost(CarrierId carrier) {
  sending_.on_carrier_lost(carrier);
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
  reset_code_ = code;
  if (code == ResetCode::no_reader) return context_.owner.tell(*this, EventKind::stopped);
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
