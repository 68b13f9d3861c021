// SPDX-License-Identifier: Apache-2.0
// Splits the bytes of a stream, which arrive in pieces of any size, into records. records.h defines their
// content.
#pragma once
#include <optional>

#include "proxy/link/records.h"

namespace longhaul::link {

// Receives records. Data is passed on as it arrives; every other record is passed on whole, and its size is
// bounded by its type. An unknown type is an error: the rest of the stream cannot be parsed.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual Result<void> on_data(Bytes plain) = 0;
  virtual Result<void> on_record(RecordType type, Bytes body) = 0;  // END and ABORT have an empty body
  // Whether the last record is not finished, or the work of this turn is done: later bytes stay with the
  // caller while this returns true.
  virtual bool waits() const { return false; }
};

class RecordParser {
 public:
  // Returns the bytes of `in` that were not read because the sink waits: feed them first when it no longer
  // waits.
  Result<Bytes> feed(Bytes in, RecordSink& sink);

  // Memory of an incomplete record.
  std::size_t held_bytes() const { return pending_.empty() ? 0 : pending_.capacity(); }

 private:
  Result<void> begin(RecordType type, std::uint64_t size, RecordSink& sink);
  void keep(Bytes piece);

  Buffer pending_;                    // an incomplete header, or an incomplete body
  std::uint64_t missing_ = 0;         // bytes of the current record's body still to come
  std::optional<RecordType> inside_;  // the record whose body is being read
  bool ended_ = false;
};

}  // namespace longhaul::link
