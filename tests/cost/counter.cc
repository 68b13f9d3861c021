// SPDX-License-Identifier: Apache-2.0
// Functions called by code of the compiler (-fsanitize-coverage=trace-pc) and the linker (--wrap). Not
// counted themselves.
#include "cost/counter.h"

#include <zlib.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace longhaul::cost {
namespace {

std::uint64_t counted = 0;
constexpr std::size_t kMovedPerStep = 16;
constexpr std::uint64_t kStepsPerAllocation = 20;

void moved(std::size_t bytes) { counted += bytes / kMovedPerStep; }

// zlib compares as many candidates at each position as have the same hash, 4,096 at most (level 9). Counted
// here on its own, and not by what the code under test says of it.
void closes(const unsigned char* plain, std::size_t size) {
  constexpr std::size_t kWindow = 32'768, kMost = 4096;
  static std::uint32_t count[1 << 15], hashes[kWindow];
  for (std::uint32_t& each : count) each = 0;
  for (std::size_t i = 0; i + 3 <= size; ++i) {
    const std::uint32_t hash =
        (std::uint32_t{plain[i]} << 10 ^ std::uint32_t{plain[i + 1]} << 5 ^ plain[i + 2]) & 0x7fff;
    if (i >= kWindow) --count[hashes[i % kWindow]];
    counted += count[hash] < kMost ? count[hash] : kMost;
    ++count[hash];
    hashes[i % kWindow] = hash;
  }
}

void* allocated(std::size_t bytes) {
  counted += kStepsPerAllocation;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::uint64_t steps() { return counted; }

Uncounted::Uncounted() : before_(counted) {}
Uncounted::~Uncounted() { counted = before_; }

}  // namespace longhaul::cost

using longhaul::cost::counted;
using longhaul::cost::moved;

void* operator new(std::size_t bytes) { return longhaul::cost::allocated(bytes); }
void* operator new[](std::size_t bytes) { return longhaul::cost::allocated(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" {

void __sanitizer_cov_trace_pc() { ++counted; }

void* __real_memcpy(void* to, const void* from, std::size_t size);
void* __wrap_memcpy(void* to, const void* from, std::size_t size) {
  moved(size);
  return __real_memcpy(to, from, size);
}
void* __real_memmove(void* to, const void* from, std::size_t size);
void* __wrap_memmove(void* to, const void* from, std::size_t size) {
  moved(size);
  return __real_memmove(to, from, size);
}
void* __real_memset(void* to, int value, std::size_t size);
void* __wrap_memset(void* to, int value, std::size_t size) {
  moved(size);
  return __real_memset(to, value, size);
}
int __real_memcmp(const void* one, const void* other, std::size_t size);
int __wrap_memcmp(const void* one, const void* other, std::size_t size) {
  moved(size);
  return __real_memcmp(one, other, size);
}

int __real_deflate(z_stream* stream, int flush);
int __wrap_deflate(z_stream* stream, int flush) {
  longhaul::cost::closes(stream->next_in, stream->avail_in);
  return __real_deflate(stream, flush);
}
int __real_inflate(z_stream* stream, int flush);
int __wrap_inflate(z_stream* stream, int flush) {
  const std::size_t before = stream->avail_out;
  const int end = __real_inflate(stream, flush);
  counted += before - stream->avail_out;
  return end;
}
std::size_t __real_ZSTD_decompressDCtx(void* context, void* to, std::size_t room, const void* from,
                                       std::size_t size);
std::size_t __wrap_ZSTD_decompressDCtx(void* context, void* to, std::size_t room, const void* from,
                                       std::size_t size) {
  counted += room / 2 + size;
  return __real_ZSTD_decompressDCtx(context, to, room, from, size);
}
std::size_t __real_ZSTD_compress2(void* context, void* to, std::size_t room, const void* from,
                                  std::size_t size);
std::size_t __wrap_ZSTD_compress2(void* context, void* to, std::size_t room, const void* from,
                                  std::size_t size) {
  counted += 4 * size;
  return __real_ZSTD_compress2(context, to, room, from, size);
}

}  // extern "C"
