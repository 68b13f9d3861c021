// SPDX-License-Identifier: Apache-2.0
// Splits the bytes of a stream, which arrive in pieces of any size, into records. records.h has what is in
// them.
#pragma once
#include <optional>

#include "proxy/link/records.h"

namespace longhaul::link {

// Splits a stream's bytes, however they are cut, into records. Data is passed on as it arrives; every other
// record is passed on whole and bounded by its type. An unknown type is an error: the rest of the stream
// cannot be parsed.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual Result<void> on_data(Bytes plain) = 0;
  virtual Result<void> on_record(RecordType type, Bytes body) = 0;  // END and ABORT have an empty body
  // The last record is not finished, or the work of this turn is done: later bytes stay with the caller until
  // the sink no longer waits.
  virtual bool waits() const { return false; }
};

class RecordParser {
 public:
  // Returns the bytes of `in` that were not read because the sink waits: feed them first when it no longer
  // does.
  Result<Bytes> feed(Bytes in, RecordSink& sink);

  // Memory of a record whose end has not arrived.
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
