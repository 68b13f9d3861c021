// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/record_parser.h"

#include <algorithm>

#include "codecs/work.h"

namespace longhaul::link {
namespace {

constexpr std::uint64_t kWorkPerRecord = 200;

std::size_t max_body(RecordType type) {
  const bool is_long =
      type == RecordType::block || type == RecordType::module || type == RecordType::dictionary;
  return is_long ? kMaxRecordBody : kMaxShortRecordBody;
}

}  // namespace

Result<void> RecordParser::begin(RecordType type, std::uint64_t size, RecordSink& sink) {
  if (type > RecordType::features) return LinkError::malformed_record;
  count_work(kWorkPerRecord);
  if (type == RecordType::end || type == RecordType::abort) {
    if (size != 0) return LinkError::malformed_record;
    ended_ = true;
    return sink.on_record(type, {});
  }
  // Data is streamed, so its length needs no bound here: credit bounds it.
  if (type != RecordType::data && size > max_body(type)) return LinkError::malformed_record;
  if (size == 0) return type == RecordType::data ? Result<void>{} : sink.on_record(type, {});
  inside_ = type;
  missing_ = size;
  return {};
}

// The body of a long record is reserved once, so that no byte of it is moved again; held_bytes() counts all
// of it, which the peer's credit covers. Short records grow with what arrives: a peer may begin many.
void RecordParser::keep(Bytes piece) {
  const std::size_t needed = pending_.size() + piece.size();
  const auto whole = needed + static_cast<std::size_t>(missing_);
  if (needed > pending_.capacity())
    pending_.reserve(whole > kMaxShortRecordBody ? whole : std::min(whole, needed + needed / 2));
  append(pending_, piece);
}

Result<Bytes> RecordParser::feed(Bytes in, RecordSink& sink) {
  while (!in.empty()) {
    if (sink.waits()) return in;
    if (ended_) return LinkError::malformed_record;
    if (!inside_) {
      // A head is at most 9 bytes; it is gathered byte by byte only when a piece ends inside it.
      bool gathered = !pending_.empty();
      if (gathered) pending_.push_back(in[0]);
      ByteReader head(gathered ? Bytes(pending_) : in);
      auto type = head.u8();
      auto size = head.varint();
      if (!size) {
        if (gathered) {
          in = in.subspan(1);
        } else {
          pending_.assign(in.begin(), in.end());
          in = {};
        }
        continue;
      }
      in = in.subspan(gathered ? 1 : in.size() - head.remaining());
      pending_.clear();
      if (auto begun = begin(static_cast<RecordType>(*type), *size, sink); !begun) return begun.error();
      continue;
    }
    Bytes piece = in.first(static_cast<std::size_t>(std::min<std::uint64_t>(missing_, in.size())));
    in = in.subspan(piece.size());
    missing_ -= piece.size();
    if (*inside_ == RecordType::data) {
      if (missing_ == 0) inside_.reset();
      if (auto told = sink.on_data(piece); !told) return told.error();
      continue;
    }
    if (missing_ != 0 || !pending_.empty()) keep(piece);
    if (missing_ != 0) continue;
    RecordType type = *inside_;
    inside_.reset();
    Buffer whole = std::move(pending_);
    pending_ = {};
    if (auto told = sink.on_record(type, whole.empty() ? piece : Bytes(whole)); !told) return told.error();
  }
  return Bytes{};
}

}  // namespace longhaul::link
