// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/compression.h"

#include "codecs/reduction/deflated.h"

namespace longhaul::reduction {
namespace {

// Fewer than this say nothing about the stream.
constexpr std::size_t kMinTrialBytes = 1024;

}  // namespace

void Compression::compress(ZstdTrials& trials, const Context& context, Bytes content,
                           std::uint8_t& block_codec, EncodedBlock& fields, Buffer& out) {
  if (content.size() < kMinBytes) return;
  const std::size_t instead_of = content.size();
  std::uint8_t codec = block_codec | kZstd;
  thread_local Buffer opened;
  opened.clear();
  if (effort_.opens_deflated && may_open_ && (codec & kInRing) && open_deflated(content, opened)) {
    codec |= kOpened;
    content = opened;
    fields.content_bytes = static_cast<std::uint32_t>(content.size());
  }
  bool telling = content.size() >= kMinTrialBytes;
  if (telling && !trials.worthwhile(content)) {
    ++incompressible_blocks_;
    return;
  }
  std::size_t begin = out.size();
  if (!context.bytes.empty()) {
    codec |= kContext;
    fields.context_distance = context.distance;
    fields.context_bytes = static_cast<std::uint32_t>(context.bytes.size());
  }
  write_encoded_fields(codec, fields, out);
  compressed_bytes_ += content.size();
  bool shrank = zstd_compress(effort_, context.bytes, content, out, instead_of);
  if (telling) trials.on_result(shrank);
  if (shrank) {
    block_codec = codec;
    if (codec & kOpened) opened_bytes_ += instead_of;
  } else {
    out.resize(begin);
    ++incompressible_blocks_;
  }
}

void Compression::fill(EncoderCounters& counters) const {
  counters.compressed_bytes = compressed_bytes_;
  counters.opened_bytes = opened_bytes_;
  counters.incompressible_blocks = incompressible_blocks_;
  counters.zstd_level = effort_.level;
  counters.zstd_relief = relief_;
}

}  // namespace longhaul::reduction
