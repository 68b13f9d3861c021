// SPDX-License-Identifier: Apache-2.0
// Compresses one block with zstd and decompresses it, with the preceding bytes as context; chooses the level,
// and when not to compress. Each thread has one zstd context of each kind for all its streams.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"

namespace longhaul {

inline constexpr std::size_t kMaxZstdContext = 1024 * 1024;

// The effort for a line: zstd must be faster than the line, and may try harder if that is easy.
struct ZstdEffort {
  int level = 3;
  std::size_t context_bytes = 64 * 1024;  // the most that one block gets
  std::size_t context_per_byte = 1;       // and how much for each byte of it: a context must be indexed first
  // Whether streams of deflate are opened: what they hold is then compressed in their place.
  bool opens_deflated = false;
  // Whether repeats are looked for at half as many places: a quarter of the time, for a few bytes in a
  // hundred of what repeats leave.
  bool thinner_samples = false;
  // Small content gains nothing from the search that high levels do, and a client may wait for it.
  int level_for(std::size_t content_bytes) const { return content_bytes < 4096 ? std::min(level, 3) : level; }
  // The context for content of that size.
  std::size_t context_for(std::size_t content_bytes) const;
};
// 0: not known. `relief` steps below what the line is worth, for want of processor time.
ZstdEffort zstd_effort(std::uint64_t line_bytes_per_second, unsigned relief = 0);

// Appends `content` as a frame without magic number, size or checksum, and says so; or leaves `out` as it was
// because that would not save enough of the `instead_of` bytes that it stands for, mostly its own. `context`
// in front of `content` in memory saves a copy of both.
bool zstd_compress(const ZstdEffort& effort, Bytes context, Bytes content, Buffer& out,
                   std::size_t instead_of);
inline bool zstd_compress(const ZstdEffort& effort, Bytes context, Bytes content, Buffer& out) {
  return zstd_compress(effort, context, content, out, content.size());
}

// Never writes past `plain`; how much it wrote, or nothing where these are no such frames.
std::optional<std::size_t> zstd_decompress(Bytes context, Bytes frames, MutableBytes plain);

// Whether the bytes of a sample are as even as random ones. Text, code and tables are not; what was
// compressed or encrypted is. Repeats it does not see.
bool looks_random(Bytes content);

// A stream's experience: whether its next block is worth the work.
class ZstdTrials {
 public:
  bool worthwhile(Bytes content);
  void on_result(bool shrank);
  // Several blocks in a row brought nothing.
  bool gave_up() const { return failures_ >= 4; }

 private:
  static constexpr std::uint8_t kMostFailures = 5;
  std::uint8_t failures_ = 0;  // in a row
  std::uint8_t skip_ = 0;      // blocks that look random to pass before the next one is tried all the same
};

}  // namespace longhaul
