// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream.h"

namespace longhaul::link {
namespace {

// Larger reads become several records, so that a record's memory is given back as the peer acknowledges it.
constexpr std::size_t kMaxDataRecord = 64 * 1024;
constexpr std::size_t kCopiedPlain = 1024;
// A smaller slice is copied, for it may be a part of one that is much larger.
constexpr std::size_t kKeptPlain = 16 * 1024;

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
  context_.retained.remove(retained_bytes());
  context_.waiting_cost -= counted_waiting_;
  forget_in_codec();
}

void Stream::forget_in_codec() {
  if (std::exchange(known_to_codec_, false)) context_.codec->forget(id_);
}

// ---------------------------------------------------------------------------------------------- the flow
// writes

// Where blocks are made each record waits for those of the bytes before it.
void Stream::append(Slice wire) {
  if (pending_.empty()) {
    keep(std::move(wire));
  } else {
    context_.retained.add(wire.size());
    pending_.write_record(std::move(wire));
  }
  context_.owner.wants_to_send(*this);
}

void Stream::keep(Slice wire) {
  context_.retained.add(wire.size());
  sending_.append(std::move(wire));
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
  const std::size_t unsent = unsent_bytes(), limit = unsent_limit();
  room = std::min<std::uint64_t>(room, unsent < limit ? limit - unsent : 0);
  room = std::min(room, context_.retained.allowance(retained_bytes()));
  if (room == 0) starved_ = true;
  return static_cast<std::size_t>(room);
}

void Stream::write(Bytes plain) {
  if (send_state_ != SendState::open || plain.empty()) return;
  send_credit_.on_sent(plain.size());
  if (makes_blocks()) {
    context_.retained.add(plain.size());
    pending_.write(plain);
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
  if (makes_blocks()) {
    context_.retained.add(plain.size());
    pending_.write(std::move(plain));
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
  if (makes_blocks()) {
    context_.retained.add(plain_bytes);
    pending_.write(wire.sub(kRecordRoom, plain_bytes));
    return context_.owner.wants_to_send(*this);
  }
  Buffer head;
  write_record_head(RecordType::data, plain_bytes, head);
  assert(head.size() <= kRecordRoom);
  std::memcpy(memory + kRecordRoom - head.size(), head.data(), head.size());
  append(wire.sub(kRecordRoom - head.size(), head.size() + plain_bytes));
}

// Features may be switched while bytes wait: what follows them waits behind them.
bool Stream::makes_blocks() const {
  return context_.codec && request_ && (wants_blocks(request_->features) || !pending_.empty());
}

// A whole block may wait beside the one that is being sent.
std::size_t Stream::unsent_limit() const {
  return context_.unsent_limit + (makes_blocks() ? kMaxBlockPlainBytes : 0);
}

void Stream::prepare_to_send() {
  while (!sending_.wants_to_send() && !pending_.empty()) encode_next();
}

void Stream::encode_all() {
  while (!pending_.empty()) encode_next();
}

void Stream::encode_next() {
  const std::size_t size = pending_.next_block(context_.first_block_bytes);
  if (size > 0) {
    pending_.on_block(size);
    thread_local Buffer encoded;
    encoded.clear();
    std::optional<BlockHeader> header;
    if (wants_blocks(request_->features)) {
      known_to_codec_ = true;
      header = context_.codec->encode(id_, stages_of(request_->features), pending_.front(size), encoded);
    }
    if (header) {
      Buffer head, block_header;
      write_block_header(*header, block_header);
      write_record_head(RecordType::block, block_header.size() + encoded.size(), head);
      longhaul::append(head, block_header);
      blocks_.out += {.blocks = 1,
                      .plain = size,
                      .deduped = context_.codec->last_encoded().after_dedup_bytes,
                      .encoded = head.size() + encoded.size()};
      context_.retained.remove(size);
      pending_.drop(size);
      keep(Slice::joined(head, encoded));
    } else {
      send_plain(size);
    }
  }
  while (auto record = pending_.take_record()) sending_.append(std::move(*record));  // is counted already
}

// As one DATA record, of which the bytes stay where they are if there are many.
void Stream::send_plain(std::size_t bytes) {
  Buffer head;
  write_record_head(RecordType::data, bytes, head);
  if (bytes <= kCopiedPlain) {
    keep(Slice::joined(head, pending_.front(bytes)));
    pending_.drop(bytes);
    return context_.retained.remove(bytes);
  }
  keep(Slice::copy_of(head));
  while (bytes > 0) {
    Slice piece = pending_.take(bytes);
    bytes -= piece.size();
    sending_.append(std::move(piece));  // is counted already
  }
}

void Stream::drop_unsent() {
  context_.retained.remove(sending_.clear() + pending_.size());
  pending_.clear();
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
  parked_.reset();
  count_waiting();
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
  drop_unsent();
  stop_reading();
  forget_in_codec();
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
    if (parked_) return park(fresh);
    auto rest = parser_.feed(fresh, *this);
    if (!rest) return rest.error();
    return park(*rest);
  });
  count_waiting();
  bool moved = receiving_.contiguous() != in_order;
  if (before && moved && receive_credit_) receive_credit_->on_stall(now - stalled_since_);
  if (receiving_.waiting_cost() && (moved || !before)) stalled_since_ = now;
  return taken;
}

// As what waits for gaps: nobody has looked yet at what credit it amounts to.
Result<void> Stream::park(Bytes wire) {
  if (wire.empty()) return {};
  parked_->behind.push_copy(wire);
  count_waiting();
  if (context_.waiting_cost > context_.pool.cap_bytes()) return LinkError::too_fragmented;
  return {};
}

void Stream::count_waiting() {
  std::uint64_t waiting = receiving_.waiting_cost();
  if (parked_) waiting += parked_->block.size() + parked_->behind.size();
  context_.waiting_cost += waiting - std::exchange(counted_waiting_, waiting);
}

Result<void> Stream::resume(TimePoint now) {
  if (!waits()) return {};
  received_at_ = now;
  Slice block = parked_->block;
  if (!decode(*parse_block(block.bytes()))) return {};
  if (parked_) parked_->block = {};
  Result<void> result;
  while (parked_ && !waits() && !parked_->behind.empty()) {
    Slice piece = parked_->behind.front();
    auto rest = parser_.feed(piece.bytes(), *this);
    if (!rest) {
      result = rest.error();
      break;
    }
    // Nobody may read any more, and then nothing is parked.
    if (parked_) parked_->behind.drop_until(parked_->behind.begin_offset() + piece.size() - rest->size());
  }
  if (parked_ && !waits() && parked_->behind.empty()) parked_.reset();
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
  if (decode(*block)) return {};
  if (!parked_) parked_ = std::make_unique<Parked>();
  parked_->block = Slice::copy_of(body);
  return {};
}

// False: not yet.
bool Stream::decode(const ParsedBlock& block) {
  if (context_.codec) {
    known_to_codec_ = true;
    auto plain = context_.codec->decode(id_, block.header, block.encoded);
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
    // The peer's connection is gone: what we would still send has no reader. What it sent before is delivered
    // first.
    drop_unsent();
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
  forget_in_codec();
  if (read_state_ == ReadState::reset) return;
  read_state_ = ReadState::reset;
  stop_reading();
  context_.owner.tell(*this, EventKind::reset);
}

bool Stream::finished() const {
  if (marks.reset_pending) return false;
  // Once an ABORT is acknowledged the peer has stopped sending.
  bool sending_done = send_state_ == SendState::reset ||
                      (send_state_ != SendState::open && pending_.empty() && sending_.all_acknowledged());
  return sending_done && (read_state_ != ReadState::open || send_state_ == SendState::aborted);
}

void Stream::tell_if_writable() {
  // Waking a flow for a few bytes costs more than it brings; half of the backlog is soon enough.
  if (!starved_ || unsent_bytes() > unsent_limit() / 2) return;
  if (may_write() == 0) return;
  starved_ = false;
  context_.owner.tell(*this, EventKind::writable);
}

}  // namespace longhaul::link
