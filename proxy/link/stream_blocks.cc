// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_blocks.h"

#include <cassert>
#include <utility>

namespace longhaul::link {

std::optional<Slice> StreamBlocks::encode(const ReductionStages& stages, Bytes plain) {
  assert(possible());
  thread_local Buffer encoded;
  encoded.clear();
  known_to_codec_ = true;
  const auto header = codec_->encode(stream_.number(), stages, plain, encoded);
  if (!header) return std::nullopt;
  Buffer head, block_header;
  write_block_header(*header, block_header);
  write_record_head(RecordType::block, block_header.size() + encoded.size(), head);
  append(head, block_header);
  counters_.out += {.blocks = 1,
                    .plain = plain.size(),
                    .deduped = codec_->last_encoded().after_dedup_bytes,
                    .encoded = head.size() + encoded.size()};
  return Slice::joined(head, encoded);
}

Result<std::optional<Slice>> StreamBlocks::decode(const ParsedBlock& block) {
  if (!possible()) return LinkError::malformed_record;
  known_to_codec_ = true;
  auto plain = codec_->decode(stream_.number(), block.header, block.encoded);
  if (!plain || !*plain) return plain;
  if ((*plain)->size() != block.header.plain_bytes) return LinkError::malformed_record;
  counters_.in += {.blocks = 1,
                   .plain = block.header.plain_bytes,
                   .deduped = codec_->last_decoded().after_dedup_bytes,
                   .encoded = block.encoded.size()};
  return plain;
}

void StreamBlocks::stop_encoding() {
  if (known_to_codec_) codec_->stop_encoding(stream_.number());
}

void StreamBlocks::forget() {
  if (std::exchange(known_to_codec_, false)) codec_->forget(stream_.number());
}

}  // namespace longhaul::link
