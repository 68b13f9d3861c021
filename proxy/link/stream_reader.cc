// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_reader.h"

#include <utility>

namespace longhaul::link {

// ------------------------------------------------------------------------------------------- the flow reads

void StreamReader::consume(std::size_t bytes, TimePoint now, Duration rtt) {
  announce_credit_if(inbox_.consume(bytes, now, rtt));
}

std::optional<Slice> StreamReader::poll_message(TimePoint now, Duration rtt) {
  std::optional<Slice> body = inbox_.poll_message();
  // Until now the message used memory, so its credit was not free.
  if (body) announce_credit_if(inbox_.on_message_taken(*body, now, rtt));
  return body;
}

void StreamReader::announce_credit_if(bool is_due) {
  if (is_due && is_open()) context_.owner.announce_credit(entry_);
}

// ------------------------------------------------------------------------------------ beginning and end

const ReceiveCredit& StreamReader::open(std::uint64_t fixed_window) {
  return inbox_.open(context_.pool, context_.credit,
                     ReceiveCredit::initial_grant(context_.pool, fixed_window), fixed_window);
}

void StreamReader::on_opened(std::uint64_t initial, std::uint64_t fixed_window) {
  ReceiveCredit& credit = inbox_.open(context_.pool, context_.credit, initial, fixed_window);
  if (credit.open_up(received_at_)) context_.owner.announce_credit(entry_);
}

void StreamReader::finish(ReadState state) {
  state_ = state;
  credit()->finish();
  context_.owner.tell(entry_, EventKind::readable);
}

void StreamReader::discard() {
  inbox_.close();
  input_.discard();
}

void StreamReader::reset() {
  state_ = ReadState::reset;
  discard();
}

// --------------------------------------------------------------------------------------- the peer's records

Result<void> StreamReader::take(StreamOffset offset, Bytes wire, TimePoint now, RecordSink& records) {
  received_at_ = now;
  const auto stall = input_.take(offset, wire, now, records);
  if (!stall) return stall.error();
  if (input_.has_unread()) context_.owner.reads_later(entry_);
  if (*stall && credit()) credit()->on_stall(**stall);
  return {};
}

Result<void> StreamReader::read_on(TimePoint now, RecordSink& records) {
  received_at_ = now;
  const auto read = input_.read_on(records);
  if (input_.has_unread()) context_.owner.reads_later(entry_);
  return read;
}

Result<void> StreamReader::on_data(Bytes plain) {
  if (!credit() || !is_open()) return LinkError::malformed_record;
  if (auto within = inbox_.add(plain, received_at_); !within) return within;
  context_.owner.tell(entry_, EventKind::readable);
  return {};
}

Result<void> StreamReader::on_message(Bytes body) {
  if (auto within = inbox_.add_message(body, received_at_); !within) return within;
  context_.owner.tell(entry_, EventKind::readable);
  return {};
}

Result<StreamReader::Block> StreamReader::on_block(Bytes body) {
  auto block = parse_block(body);
  if (!block) return block.error();
  if (auto within = inbox_.charge(block->header.plain_bytes, received_at_); !within) return within.error();
  const Block decoded = decode(*block);
  if (decoded == Block::waits) input_.wait_for(body);
  return decoded;
}

StreamReader::Block StreamReader::try_again(TimePoint now) {
  received_at_ = now;
  const Slice block = input_.waiting_block();
  const Block decoded = decode(*parse_block(block.bytes()));
  if (decoded != Block::waits) input_.on_decoded();
  return decoded;
}

StreamReader::Block StreamReader::decode(const ParsedBlock& block) {
  auto plain = blocks_.decode(block);
  if (!plain) return Block::undecodable;
  if (!*plain) return Block::waits;
  inbox_.add(std::move(**plain));
  context_.owner.tell(entry_, EventKind::readable);
  return Block::restored;
}

}  // namespace longhaul::link
