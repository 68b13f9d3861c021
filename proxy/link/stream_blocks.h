// SPDX-License-Identifier: Apache-2.0
// The blocks of one stream, in both directions: the session's codec makes and restores them, and is told when
// no more will follow. When a block is made, and what waits for one, is decided elsewhere.
#pragma once
#include <optional>

#include "codecs/block_codec.h"
#include "proxy/link/block_counters.h"
#include "proxy/link/records.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class StreamBlocks {
 public:
  // Null: there are no blocks. The codec outlives this object.
  StreamBlocks(StreamId stream, BlockCodec* codec) : stream_(stream), codec_(codec) {}
  ~StreamBlocks() { forget(); }
  StreamBlocks(const StreamBlocks&) = delete;
  StreamBlocks& operator=(const StreamBlocks&) = delete;

  bool possible() const { return codec_ != nullptr; }

  // A whole BLOCK record of at most kMaxBlockPlainBytes. No result: the bytes are sent plain. Only if blocks
  // are possible.
  std::optional<Slice> encode(const ReductionStages& stages, Bytes plain);
  // The plain bytes, verified. No value: not yet. An error: they cannot be restored.
  Result<std::optional<Slice>> decode(const ParsedBlock& block);

  // The peer ignores what was sent, so it would never be answered.
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
