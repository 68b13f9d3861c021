// SPDX-License-Identifier: Apache-2.0
// The flow's operations on its stream, and how its bytes become blocks. stream_receive.cc handles the peer's
// data.
#include "proxy/link/stream.h"

namespace longhaul::link {
namespace {

// Larger reads become several records, so that a record's memory is given back as the peer acknowledges it.
constexpr std::size_t kMaxDataRecord = 64 * 1024;
constexpr std::size_t kCopiedPlain = 1024;
// A smaller slice is copied, because it may be part of a much larger one.
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
  receive_credit_.emplace(context_.pool, context_.credit,
                          ReceiveCredit::initial_grant(context_.pool, request_->features.window_bytes),
                          request_->features.window_bytes);
  request_->forward_credit = send_credit;
  request_->reverse_credit = receive_credit_->announced_limit();
  Buffer body;
  write_open(*request_, body);
  append_record(RecordType::open, body);
  open_end_ = sending_.end_offset();
}

Stream::~Stream() {
  context_.retained.remove(retained_bytes());
  context_.waiting_cost -= counted_waiting_;
  forget_in_codec();
}

void Stream::forget_in_codec() {
  if (std::exchange(known_to_codec_, false)) context_.codec->forget(id_.number());
}

// The peer ignores what was sent, so it would never be answered.
void Stream::stop_encoding() {
  if (known_to_codec_) context_.codec->stop_encoding(id_.number());
}

// ---------------------------------------------------------------------------------------------- the flow
// writes

// If blocks are made, each record waits for those of the bytes before it.
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

// Features may change while bytes wait: the change waits behind them.
bool Stream::makes_blocks() const {
  return context_.codec && request_ && (wants_blocks(request_->features) || !pending_.empty());
}

// A whole block may wait beside the one that is being sent; if blocks shrink to almost nothing, as many as
// fill a packet or two of a slow line.
std::size_t Stream::unsent_limit() const {
  if (!makes_blocks()) return context_.unsent_limit;
  constexpr std::size_t kMostTimes = 8, kMostForPackets = 1 << 20;
  const std::size_t least = context_.unsent_limit + kMaxBlockPlainBytes;
  return std::max(least,
                  std::min(least * std::clamp<std::size_t>(shrinks_ / 4, 1, kMostTimes), kMostForPackets));
}

bool Stream::prepare_to_send(std::size_t room) {
  while (!pending_.empty() &&
         (!sending_.wants_to_send() || (!sending_.repeats() && sending_.unsent_bytes() < room))) {
    const bool first = pending_.was_quiet();
    encode_next();
    if (first && !pending_.empty()) return true;
  }
  return false;
}

void Stream::encode_all() {
  while (!pending_.empty()) encode_next();
}

void Stream::encode_next() {
  // The line's capacity in that time, if these bytes shrink like those before them.
  const std::size_t first =
      std::min<std::size_t>(context_.first_block_bytes, kMaxBlockPlainBytes) * std::max(shrinks_, 1u);
  const std::size_t size = pending_.next_block(first);
  if (size > 0) {
    pending_.on_block(size);
    thread_local Buffer encoded;
    encoded.clear();
    std::optional<BlockHeader> header;
    Bytes plain;
    if (wants_blocks(request_->features)) {
      known_to_codec_ = true;
      plain = pending_.front(size);
      header = context_.codec->encode(id_.number(), stages_of(request_->features), plain, encoded);
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
      shrinks_ = static_cast<std::uint32_t>(size / (head.size() + encoded.size()));
      context_.retained.remove(size);
      pending_.drop(size);
      keep(Slice::joined(head, encoded));
    } else {
      shrinks_ = 1;
      send_plain(size, plain);
    }
  }
  while (auto record = pending_.take_record()) sending_.append(std::move(*record));  // is counted already
}

// As one DATA record, of which the bytes stay where they are if there are many. `gathered`: the bytes in one
// piece, or nothing.
void Stream::send_plain(std::size_t bytes, Bytes gathered) {
  Buffer head;
  write_record_head(RecordType::data, bytes, head);
  if (bytes <= kCopiedPlain) {
    keep(Slice::joined(head, gathered.empty() ? pending_.front(bytes) : gathered));
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

// Further data from the peer is received and dropped.
void Stream::stop_reading() {
  parked_.reset();
  readable_.drop_until(readable_.end_offset());
  messages_ = {};
  first_message_ = 0;
  receive_credit_.reset();
  receiving_.stop_keeping();
  parser_ = {};
  discarding_ = true;
  count_waiting();
}

void Stream::reset(ResetCode code) {
  // If both directions have ended the peer knows everything already.
  bool known = send_state_ == SendState::reset && read_state_ != ReadState::open;
  send_state_ = SendState::reset;
  read_state_ = ReadState::reset;
  drop_unsent();
  stop_reading();
  forget_in_codec();
  if (!known) tell_reset(code);
}

// Data given to a carrier may have arrived, whatever happened to the carrier since: a missing acknowledgement
// proves nothing. A peer behind a line that was cut, and one that died a moment later, both gave the first
// bytes to the server as soon as they had them. So only data that no carrier got can be taken back.
std::optional<Buffer> Stream::take_back() {
  if (!opened_here_ || answer_ || send_state_ != SendState::open || sending_.ever_sent() > open_end_)
    return std::nullopt;
  // Blocks, which the codec would have to undo, and messages, which only a module's twin understands, are
  // made when there is room to send them: they stay here for a moment at most.
  struct Written final : RecordSink {
    Result<void> on_data(Bytes bytes) override {
      longhaul::append(plain, bytes);
      return {};
    }
    Result<void> on_record(RecordType, Bytes) override {
      only_data = false;
      return {};
    }
    Buffer plain;
    bool only_data = true;
  } written;
  RecordParser parser;
  sending_.visit({open_end_, sending_.end_offset()}, [&](Bytes piece) {
    if (auto read = parser.feed(piece, written); !read) written.only_data = false;
  });
  if (!written.only_data || pending_.has_records()) return std::nullopt;
  while (!pending_.empty()) {
    const Slice piece = pending_.take(pending_.size());
    context_.retained.remove(piece.size());
    longhaul::append(written.plain, piece.bytes());
  }
  reset(ResetCode::aborted);
  return std::move(written.plain);
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
  // Until now it used memory, so its credit was not free.
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

bool Stream::finished() const {
  if (marks.reset_pending) return false;
  // Once an ABORT is acknowledged the peer has stopped sending.
  bool sending_done = send_state_ == SendState::reset ||
                      (send_state_ != SendState::open && pending_.empty() && sending_.all_acknowledged());
  return sending_done && (read_state_ != ReadState::open || send_state_ == SendState::aborted);
}

void Stream::tell_if_writable() {
  // Waking a flow for a few bytes costs more than it gains; half of the backlog is soon enough.
  if (!starved_ || unsent_bytes() > unsent_limit() / 2) return;
  if (may_write() == 0) return;
  starved_ = false;
  context_.owner.tell(*this, EventKind::writable);
}

}  // namespace longhaul::link
