// SPDX-License-Identifier: Apache-2.0
// Finds the parts of a block that occur in the history, byte for byte, and adds the block for later ones.
// references.h encodes the result; the caller decides which history may be referred to.
#pragma once
#include <memory>
#include <vector>

#include "codecs/dedup/fingerprint_index.h"
#include "codecs/dedup/history_ring.h"
#include "codecs/dedup/references.h"
#include "codecs/dedup/sampler.h"
#include "codecs/interval_set.h"

namespace longhaul::dedup {

// Borrows a function that says which range around a ring offset may be referred to; an interval that does not
// contain the offset means none. It is called about once per candidate and gives the same result throughout
// one call.
class Usable {
 public:
  template <class Function>
  requires(!std::is_same_v<Function, Usable>)
      Usable(const Function& function)  // NOLINT: made in passing, like std::function_ref
      : function_(&function),
        ask_([](const void* f, std::uint64_t offset) { return (*static_cast<const Function*>(f))(offset); }) {
  }
  Interval operator()(std::uint64_t offset) const { return ask_(function_, offset); }

 private:
  const void* function_;
  Interval (*ask_)(const void*, std::uint64_t);
};

class MatchFinder {
 public:
  struct Options {
    std::size_t ring_bytes = 0;        // the ring's size: the index takes up to a sixteenth of it
    const Kernels* kernels = nullptr;  // the machine's best
  };
  // An error if there is no memory for the index.
  static Result<MatchFinder> make(const Options& options);

  // Fills `copies` with the parts of the block at [offset, offset + size) of the ring, already written there,
  // that occur in usable history before it: in order, disjoint. Then remembers the block. At most 64 KiB.
  // `continuation`: where the block may continue in the history, as this call left it for the stream's
  // previous block, 0 if unknown. Without it fewer repeats are found in short blocks, and in those with few
  // samples.
  void find(const HistoryRing& ring, std::uint64_t offset, std::size_t size, Usable usable,
            std::vector<Copy>& copies, std::uint64_t* continuation = nullptr);

  // Remembers history that arrived in another way, without replacing entries: those are usable already.
  void insert(const HistoryRing& ring, std::uint64_t offset, std::size_t size);

  // Takes half of the samples of large blocks while set: faster, and repeats are found later.
  void set_thinner(bool thinner) { thinner_ = thinner; }

  // Drops everything and releases the memory.
  void clear() {
    index_.clear();
    fresh_bytes_ = 0;
  }

  std::size_t index_bytes() const { return index_.bytes(); }

 private:
  class Search;

  MatchFinder(const Options& options, FingerprintIndex index)
      : kernels_(options.kernels ? options.kernels : &kernels()), index_(std::move(index)) {}

  unsigned halvings() const;

  const Kernels* kernels_;
  FingerprintIndex index_;
  bool thinner_ = false;
  std::uint64_t fresh_bytes_ = 0;  // in large blocks, since the last match
};

}  // namespace longhaul::dedup
