// SPDX-License-Identifier: Apache-2.0
// Compresses what is left of a block after its repeats were found, if that pays: with an effort that suits
// the line and the processor, and after its deflate streams were unpacked if the twin can pack them again.
#pragma once
#include "codecs/reduction/counters.h"
#include "codecs/reduction/encoded_block.h"
#include "codecs/zstd_stage.h"

namespace longhaul::reduction {

class Compression {
 public:
  static constexpr std::size_t kMinBytes = 48;  // of the content: less is not worth a frame

  // Where deflate streams are unpacked at all; otherwise they never are.
  void allow_opening(bool allowed) { may_open_ = allowed; }
  void set_line_rate(std::uint64_t bytes_per_second) {
    line_rate_ = bytes_per_second;
    effort_ = zstd_effort(line_rate_, relief_);
  }
  // Steps by which the effort stays below the one that suits the line.
  void set_relief(unsigned steps) {
    relief_ = steps;
    effort_ = zstd_effort(line_rate_, relief_);
  }
  void set_effort(const ZstdEffort& effort) { effort_ = effort; }
  const ZstdEffort& effort() const { return effort_; }

  // A piece of the history, and how far it ends before the block.
  struct Context {
    Bytes bytes;
    std::uint64_t distance = 0;
  };
  // Appends the content, compressed, after the fields, and completes `codec` and `fields`. Or it does not
  // pay: `out` and `codec` are unchanged. `trials`: of the block's stream.
  void compress(ZstdTrials& trials, const Context& context, Bytes content, std::uint8_t& codec,
                EncodedBlock& fields, Buffer& out);

  // Sets those that it counts.
  void fill(EncoderCounters& counters) const;

 private:
  std::uint64_t line_rate_ = 0;
  unsigned relief_ = 0;
  ZstdEffort effort_;
  bool may_open_ = false;
  std::uint64_t compressed_bytes_ = 0, opened_bytes_ = 0, incompressible_blocks_ = 0;
};

}  // namespace longhaul::reduction
