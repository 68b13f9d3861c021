// SPDX-License-Identifier: Apache-2.0
// Data of a flow that is not in a block yet: plain bytes, and the records between them. Determines the size
// of the next block; the stream encodes it and handles credit.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "codecs/block_codec.h"
#include "codecs/slice_queue.h"

namespace longhaul::link {

class PendingBlocks {
 public:
  // `isolated`: no block has these bytes together with others that are not.
  void write(Bytes plain, bool isolated = false) {
    note_isolation(isolated);
    plain_.push_copy(plain);
  }
  void write(Slice plain, bool isolated = false) {
    note_isolation(isolated);
    plain_.push(std::move(plain));
  }
  // Adds a record after the bytes written so far.
  void write_record(Slice wire) {
    record_bytes_ += wire.size();
    records_.push_back({plain_.end_offset(), std::move(wire)});
  }

  bool empty() const { return plain_.empty() && record_bytes_ == 0; }
  bool has_records() const { return record_bytes_ > 0; }
  // Plain bytes, and records in wire form.
  std::size_t size() const { return plain_.size() + record_bytes_; }

  // The number of plain bytes in the next block; the first block after a pause has at most `first`. 0: a
  // record is next, or nothing waits.
  std::size_t next_block(std::size_t first) const;
  // Of the bytes in the next block.
  bool front_is_isolated() const { return front_is_isolated_; }
  // That many contiguous bytes: in place, or gathered in memory that the next call reuses.
  Bytes front(std::size_t bytes) const;
  // Takes at most `most` of the contiguous bytes, without a copy.
  Slice take(std::size_t most) {
    Slice piece = plain_.front();
    if (piece.size() > most) piece = piece.sub(0, most);
    drop(piece.size());
    return piece;
  }
  void drop(std::size_t bytes);
  // A block was made.
  void on_block(std::size_t bytes) { last_block_ = std::max(bytes, last_block_); }
  // The next record in order.
  std::optional<Slice> take_record();

  // Everything was sent and nothing is pending: the next block has the initial size.
  void on_quiet() { last_block_ = 0; }
  bool was_quiet() const { return last_block_ == 0; }
  void clear();

 private:
  struct Record {
    std::uint64_t position;  // in plain_
    Slice wire;
  };

  void note_isolation(bool isolated);

  std::optional<std::uint64_t> isolation_change() const {
    if (first_change_ == isolation_changes_.size()) return std::nullopt;
    return isolation_changes_[first_change_];
  }
  // Drops the elements before `first`, when they are all or many of them.
  template <class Element>
  static void forget_first(std::vector<Element>& all, std::size_t& first);

  SliceQueue plain_;
  std::vector<Record> records_;  // few: module messages, and the end
  std::size_t first_record_ = 0;
  std::size_t record_bytes_ = 0;
  std::size_t last_block_ = 0;  // the largest since the last pause
  std::vector<std::uint64_t> isolation_changes_;  // positions in plain_
  std::size_t first_change_ = 0;
  bool front_is_isolated_ = false, back_is_isolated_ = false;
};

}  // namespace longhaul::link
