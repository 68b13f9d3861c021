// SPDX-License-Identifier: Apache-2.0
// Compresses one block with zstd and decompresses it, with the preceding bytes as context; chooses the level,
// and when not to compress. Each thread has one zstd context of each kind for all its streams.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"

namespace longhaul {

inline constexpr std::size_t kMaxZstdContext = 1024 * 1024;

// The effort for a line: zstd must be faster than the line, and may use a higher level if there is time.
struct ZstdEffort {
  int level = 3;
  std::size_t context_bytes = 64 * 1024;  // the maximum for one block
  std::size_t context_per_byte = 1;       // and for each of its bytes: a context must be indexed first
  // Whether deflate streams are unpacked: then their content is compressed instead.
  bool opens_deflated = false;
  // Whether repeats are searched at half as many positions: this takes a quarter of the time, but leaves a
  // few per cent more of the repeated bytes.
  bool thinner_samples = false;
  // Small content gains nothing from the search of high levels, and a client may wait for it.
  int level_for(std::size_t content_bytes) const { return content_bytes < 4096 ? std::min(level, 3) : level; }
  // The context for content of that size.
  std::size_t context_for(std::size_t content_bytes) const;
};
// 0: unknown. `relief`: steps below the level that suits the line, for lack of processor time.
ZstdEffort zstd_effort(std::uint64_t line_bytes_per_second, unsigned relief = 0);

// Appends `content` as a frame without magic number, size or checksum, and returns true; or leaves `out`
// unchanged if that would not save enough of the `instead_of` bytes that it replaces, mostly its own. If
// `context` is directly before `content` in memory, no copy of both is needed.
bool zstd_compress(const ZstdEffort& effort, Bytes context, Bytes content, Buffer& out,
                   std::size_t instead_of);
inline bool zstd_compress(const ZstdEffort& effort, Bytes context, Bytes content, Buffer& out) {
  return zstd_compress(effort, context, content, out, content.size());
}

// Never writes beyond `plain`. Returns how much it wrote, or nullopt if the input is not such frames.
std::optional<std::size_t> zstd_decompress(Bytes context, Bytes frames, MutableBytes plain);

// Whether the bytes of a sample are as evenly distributed as random ones. Text, code and tables are not;
// compressed or encrypted data is. Does not detect repeats.
bool looks_random(Bytes content);

// A stream's history of compression: whether its next block is worth the work.
class ZstdTrials {
 public:
  bool worthwhile(Bytes content);
  void on_result(bool shrank);
  // Whether several blocks in a row gained nothing.
  bool gave_up() const { return failures_ >= 4; }

 private:
  static constexpr std::uint8_t kMostFailures = 5;
  std::uint8_t failures_ = 0;  // consecutive
  std::uint8_t skip_ = 0;      // random-looking blocks to skip before the next one is tried
};

}  // namespace longhaul
