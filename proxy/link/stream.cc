// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream.h"

#include <utility>

namespace longhaul::link {

// ------------------------------------------------------------------------------------------------ beginning

Stream::Stream(StreamId id, StreamContext& context)
    : entry_(id),
      context_(context),
      blocks_(id, context.codec),
      writer_(entry_, context, blocks_),
      reader_(entry_, context, blocks_) {}

Stream::Stream(StreamId id, StreamContext& context, OpenRequest request, std::uint64_t send_credit,
               std::uint64_t open_credit)
    : entry_(id),
      context_(context),
      opening_(std::move(request)),
      blocks_(id, context.codec),
      writer_(entry_, context, blocks_),
      reader_(entry_, context, blocks_) {
  OpenRequest& open = opening_.request();
  open.forward_credit = send_credit;
  open.reverse_credit = reader_.open(open.features.window_bytes).announced_limit();
  begin();
  Buffer body;
  write_open(open, body);
  writer_.open(body, send_credit, open_credit);
}

void Stream::begin() {
  entry_.begun = true;
  apply(request().features);
}

void Stream::use_features(const config::Features& features) {
  opening_.request().features = features;
  apply(features);
}

void Stream::apply(const config::Features& features) {
  entry_.paths = features.paths;
  writer_.output().use(features);
}

void Stream::give_answer(const OpenAnswer& answer) {
  if (!writer_.is_open()) return;
  opening_.on_answer(answer);
  Buffer body;
  write_answer(answer, body);
  writer_.answer(body);
}

// ----------------------------------------------------------------------------------------------- the flow
// ends

void Stream::abort() {
  if (writer_.is_open()) {
    writer_.abort();
    reader_.discard();
  } else if (writer_.state() == WriteState::ended) {
    // Our direction stays valid. If the peer's has not ended, it is informed that its own has no reader.
    if (!reader_.is_open()) return reader_.discard();
    reader_.reset();
    tell_reset(ResetCode::no_reader);
  }
}

void Stream::tell_reset(ResetCode code) {
  reset_code_ = code;
  entry_.reset_pending = true;
  context_.owner.announce_reset(entry_);
}

void Stream::reset(ResetCode code) {
  // If both directions have ended, the peer has all the information already.
  const bool known = writer_.state() == WriteState::reset && !reader_.is_open();
  writer_.drop();
  reader_.reset();
  blocks_.forget();
  if (!known) tell_reset(code);
}

std::optional<Buffer> Stream::take_back() {
  if (!opening_.opened_here() || answer()) return std::nullopt;
  auto written = writer_.take_back();
  if (written) reset(ResetCode::aborted);
  return written;
}

bool Stream::may_finish() const {
  const WriteState sent = writer_.state();
  return sent != WriteState::open && (!reader_.is_open() || sent == WriteState::aborted) &&
         (reader_.readable().empty() || sent == WriteState::reset);
}

bool Stream::finished() const {
  if (entry_.reset_pending) return false;
  // Once an ABORT is acknowledged the peer has stopped sending.
  return writer_.is_complete() && (!reader_.is_open() || writer_.state() == WriteState::aborted);
}

// ------------------------------------------------------------------------------------- the peer's records

Result<void> Stream::on_frame(StreamOffset offset, Bytes payload, TimePoint now) {
  return reader_.take(offset, payload, now, *this);
}

Result<void> Stream::resume(TimePoint now) {
  if (!reader_.waits_for_block()) return {};
  switch (reader_.try_again(now)) {
    case StreamReader::Block::waits:
      return {};
    case StreamReader::Block::undecodable:
      give_up_undecodable();
      break;
    case StreamReader::Block::restored:
      break;
  }
  return read_on(now);
}

Result<void> Stream::on_data(Bytes plain) {
  if (reader_.discards()) return {};
  if (!opening_.permits(RecordType::data)) return LinkError::malformed_record;
  return reader_.on_data(plain);
}

Result<void> Stream::on_record(RecordType type, Bytes body) {
  if (reader_.discards()) return {};
  if (!opening_.permits(type)) return LinkError::malformed_record;
  switch (type) {
    case RecordType::open:
      return on_open(body);
    case RecordType::answer:
      return on_answer(body);
    case RecordType::block:
      return on_block(body);
    case RecordType::module:
      return reader_.on_message(body);
    case RecordType::end:
      reader_.finish(ReadState::ended);
      return {};
    case RecordType::abort:
      on_abort();
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
  begin();
  const std::uint64_t floor = context_.pool.floor_bytes(), forward = request().forward_credit;
  if (auto taken = context_.owner.take_open_credit(forward > floor ? forward - floor : 0); !taken)
    return taken;
  if (!context_.owner.admits(entry_)) {
    reset(ResetCode::aborted);
    entry_.released = true;
    return {};
  }
  reader_.on_opened(forward, request().features.window_bytes);
  writer_.grant(request().reverse_credit);
  context_.owner.tell(entry_, EventKind::opened);
  if (writer_.state() == WriteState::reset) context_.owner.tell(entry_, EventKind::stopped);
  return {};
}

Result<void> Stream::on_answer(Bytes body) {
  auto parsed = parse_answer(body);
  if (!parsed) return parsed.error();
  opening_.on_answer(*parsed);
  context_.owner.tell(entry_, EventKind::answered);
  return {};
}

Result<void> Stream::on_block(Bytes body) {
  const auto block = reader_.on_block(body);
  if (!block) return block.error();
  if (*block == StreamReader::Block::undecodable) give_up_undecodable();
  return {};
}

// Wrong bytes are never delivered: the flow ends here, the session continues.
void Stream::give_up_undecodable() {
  reset(ResetCode::undecodable);
  context_.owner.tell(entry_, EventKind::reset);
}

// The peer's connection has ended: our remaining data has no reader. The data that it sent before is
// delivered first.
void Stream::on_abort() {
  writer_.drop();
  blocks_.stop_encoding();
  reset_code_ = ResetCode::connection_reset;
  reader_.finish(ReadState::aborted);
}

void Stream::on_reset(ResetCode code) {
  writer_.drop();
  // This side's own remaining data must still be sent unchanged.
  if (!entry_.reset_pending) reset_code_ = code;
  if (code == ResetCode::no_reader) {
    // A stream that was aborted here has no reader either: then both directions are over.
    blocks_.stop_encoding();
    if (reader_.discards()) {
      reader_.reset();
    } else {
      context_.owner.tell(entry_, EventKind::stopped);
    }
    return;
  }
  blocks_.forget();
  if (reader_.state() == ReadState::reset) return;
  reader_.reset();
  context_.owner.tell(entry_, EventKind::reset);
}

}  // namespace longhaul::link
