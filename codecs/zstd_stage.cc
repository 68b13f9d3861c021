// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd_stage.h"

#define ZSTD_STATIC_LINKING_ONLY  // for frames without magic number
#include <zstd.h>

#include <algorithm>
#include <array>

namespace longhaul {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

ZSTD_CCtx* compressor() {
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context = [] {
    std::unique_ptr<ZSTD_CCtx, FreeContext> made(ZSTD_createCCtx());
    if (!made) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(made.get(), ZSTD_c_format, ZSTD_f_zstd1_magicless);
    ZSTD_CCtx_setParameter(made.get(), ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(made.get(), ZSTD_c_checksumFlag, 0);
    ZSTD_CCtx_setParameter(made.get(), ZSTD_c_dictIDFlag, 0);
    return made;
  }();
  return context.get();
}

ZSTD_DCtx* decompressor() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context = [] {
    std::unique_ptr<ZSTD_DCtx, FreeContext> made(ZSTD_createDCtx());
    if (!made) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(made.get(), ZSTD_d_format, ZSTD_f_zstd1_magicless);
    return made;
  }();
  return context.get();
}

// A smaller gain does not justify decompression.
std::size_t least_saving(std::size_t content_bytes) { return 4 + content_bytes / 128; }

}  // namespace

std::size_t ZstdEffort::context_for(std::size_t content_bytes) const {
  constexpr std::size_t kLeast = 4096;  // a message of 100 bytes shows little
  return std::min(context_bytes, std::max(kLeast, content_bytes * context_per_byte));
}

ZstdEffort zstd_effort(std::uint64_t rate, unsigned relief) {
  // Levels chosen by measurements with documentation, headers and kernel modules: the seventh saves a tenth
  // of the bytes of the first, at a tenth of its speed. Each must be faster than its lines on one core,
  // including all other work on a block, and a byte on the line stands for two to four of them: on the
  // fastest lines the processor is the bottleneck.
  static constexpr std::array<ZstdEffort, 10> kEfforts = {{
      {.level = 8, .context_bytes = 512 * 1024, .context_per_byte = 8, .opens_deflated = true},
      {.level = 7, .context_bytes = 384 * 1024, .context_per_byte = 6, .opens_deflated = true},
      {.level = 6, .context_bytes = 256 * 1024, .context_per_byte = 4, .opens_deflated = true},
      {.level = 4, .context_bytes = 128 * 1024, .context_per_byte = 2, .opens_deflated = true},
      {.level = 3, .context_bytes = 64 * 1024, .context_per_byte = 1},
      {.level = 2, .context_bytes = 64 * 1024, .context_per_byte = 1},
      {.level = 1, .context_bytes = 16 * 1024, .context_per_byte = 1},
      {.level = -2, .context_bytes = 8 * 1024, .context_per_byte = 1},
      {.level = -6, .context_bytes = 4 * 1024, .context_per_byte = 1, .thinner_samples = true},
      {.level = -10, .context_bytes = 4 * 1024, .context_per_byte = 1, .thinner_samples = true},
  }};
  static constexpr std::array<std::uint64_t, 9> kUpTo = {4'000'000,   7'000'000,   9'000'000,
                                                         13'000'000,  24'000'000,  60'000'000,
                                                         130'000'000, 300'000'000, 600'000'000};
  std::size_t worth = 4;
  if (rate)
    worth = static_cast<std::size_t>(std::lower_bound(kUpTo.begin(), kUpTo.end(), rate) - kUpTo.begin());
  return kEfforts[std::min(worth + relief, kEfforts.size() - 1)];
}

bool zstd_compress(const ZstdEffort& effort, Bytes context, Bytes content, Buffer& out,
                   std::size_t instead_of) {
  std::size_t saving = least_saving(instead_of);
  if (instead_of <= saving) return false;
  if (!context.empty() && context.data() + context.size() != content.data()) {
    // zstd finds matches much faster in contiguous memory than in two pieces.
    thread_local Buffer joined;
    joined.clear();
    append(joined, context);
    append(joined, content);
    context = Bytes(joined).first(context.size());
    content = Bytes(joined).subspan(context.size());
  }
  ZSTD_CCtx* zstd = compressor();
  ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, effort.level_for(content.size()));
  // Indexing a context is half of the work of high levels: it is faster if the index fits into the cache.
  constexpr int kIndexLog = 18;
  ZSTD_CCtx_setParameter(zstd, ZSTD_c_hashLog, effort.level > 4 && content.size() >= 4096 ? kIndexLog : 0);
  if (!context.empty()) ZSTD_CCtx_refPrefix(zstd, context.data(), context.size());
  std::size_t filled = out.size(), room = instead_of - saving;
  out.resize(filled + room);
  std::size_t written = ZSTD_compress2(zstd, out.data() + filled, room, content.data(), content.size());
  // Too little room is the only possible error.
  bool shrank = !ZSTD_isError(written);
  out.resize(filled + (shrank ? written : 0));
  return shrank;
}

std::optional<std::size_t> zstd_decompress(Bytes context, Bytes frames, MutableBytes plain) {
  ZSTD_DCtx* zstd = decompressor();
  // Also discards the context of the previous call, and any state after an error.
  if (ZSTD_isError(ZSTD_DCtx_reset(zstd, ZSTD_reset_session_only))) return std::nullopt;
  if (ZSTD_isError(ZSTD_DCtx_refPrefix(zstd, context.empty() ? nullptr : context.data(), context.size())))
    return std::nullopt;
  std::size_t written = ZSTD_decompressDCtx(zstd, plain.data(), plain.size(), frames.data(), frames.size());
  if (ZSTD_isError(written)) return std::nullopt;
  return written;
}

bool looks_random(Bytes content) {
  constexpr std::size_t kPieces = 16, kPiece = 256;
  if (content.size() < 1024) return false;
  std::array<std::uint16_t, 256> even{}, odd{};  // two, so that equal neighbours do not wait for each other
  std::size_t step = (content.size() - std::min(content.size(), kPiece)) / (kPieces - 1), counted = 0;
  for (std::size_t at = 0; at + kPiece <= content.size(); at += std::max(step, kPiece)) {
    const std::byte* piece = content.data() + at;
    for (std::size_t i = 0; i < kPiece; i += 2) {
      ++even[std::to_integer<std::size_t>(piece[i])];
      ++odd[std::to_integer<std::size_t>(piece[i + 1])];
    }
    counted += kPiece;
  }
  std::uint64_t squares = 0;
  for (std::size_t value = 0; value < 256; ++value) {
    std::uint64_t count = std::uint64_t{even[value]} + odd[value];
    squares += count * count;
  }
  // Random bytes give n + n^2/256; the deviation is far below 1 % of it for 4,096 of them. English text gives
  // twelve times as much, machine code five.
  std::uint64_t expected = counted + counted * counted / 256;
  return squares < expected + expected / 12;
}

bool ZstdTrials::worthwhile(Bytes content) {
  if (failures_ == 0) return true;
  if (!looks_random(content)) return true;
  if (skip_ > 0) {
    --skip_;
    return false;
  }
  return true;
}

void ZstdTrials::on_result(bool shrank) {
  if (shrank) {
    failures_ = skip_ = 0;
    return;
  }
  if (failures_ < kMostFailures) ++failures_;
  skip_ = static_cast<std::uint8_t>(1u << failures_);
}

}  // namespace longhaul
