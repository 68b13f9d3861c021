// SPDX-License-Identifier: Apache-2.0
// The blocks of one stream, in both directions. The session's codec encodes and decodes them, and is notified
// when no more will follow. Other classes decide when a block is made, and which data waits for one.
#pragma once
#include <optional>

#include "codecs/block_codec.h"
#include "proxy/link/block_counters.h"
#include "proxy/link/records.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class StreamBlocks {
 public:
  // `codec` is null if blocks are not used. The codec outlives this object.
  StreamBlocks(StreamId stream, BlockCodec* codec) : stream_(stream), codec_(codec) {}
  ~StreamBlocks() { forget(); }
  StreamBlocks(const StreamBlocks&) = delete;
  StreamBlocks& operator=(const StreamBlocks&) = delete;

  bool possible() const { return codec_ != nullptr; }

  // Encodes at most kMaxBlockPlainBytes into a whole BLOCK record. Returns nullopt if the bytes are to be
  // sent plain. To be called only if blocks are possible.
  std::optional<Slice> encode(const ReductionStages& stages, Bytes plain);
  // Returns the plain bytes, verified; nullopt if the block cannot be decoded yet; an error if it can never
  // be.
  Result<std::optional<Slice>> decode(const ParsedBlock& block);

  // The peer drops what was sent, so it would never acknowledge the blocks.
  void stop_encoding();
  // Both directions have ended.
  void forget();

  const BlockCounters& counters() const { return counters_; }

 private:
  StreamId stream_;
  BlockCodec* codec_;
  bool known_to_codec_ = false;
  BlockCounters counters_;
};

}  // namespace longhaul::link
