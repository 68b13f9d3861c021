// SPDX-License-Identifier: Apache-2.0
// What content-defined chunks of 8 KiB would save on the same files: FastCDC's cuts (gear hash, normalised),
// a name of 16 bytes for each chunk that is known, zstd -1 on the bytes of the others. A yardstick for the
// benchmarks and nothing else: there is no store, no decoder and no bound on what is remembered.
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

constexpr std::size_t kLeast = 2 * 1024, kAverage = 8 * 1024, kMost = 64 * 1024;
constexpr std::size_t kNameBytes = 16;
// Two bits more up to the average, two fewer behind it (Xia et al. 2016, normalisation level 2). The gear's
// upper bits depend on the last 64 bytes, the lower ones on fewer: masks take the upper ones.
constexpr std::uint64_t top_bits(int count) { return ~std::uint64_t{0} << (64 - count); }
constexpr std::uint64_t kMaskBefore = top_bits(13 + 2), kMaskBehind = top_bits(13 - 2);

std::array<std::uint64_t, 256> make_gear() {
  std::array<std::uint64_t, 256> gear{};
  std::uint64_t counter = 0;
  for (std::uint64_t& value : gear) {  // SplitMix64
    std::uint64_t z = counter += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    value = z ^ (z >> 31);
  }
  return gear;
}

std::size_t cut(const std::uint8_t* bytes, std::size_t size) {
  static const std::array<std::uint64_t, 256> kGear = make_gear();
  if (size <= kLeast) return size;
  const std::size_t end = std::min(size, kMost), normal = std::min(end, kAverage);
  std::uint64_t hash = 0;
  std::size_t at = kLeast;
  for (; at < normal; ++at)
    if (((hash = (hash << 1) + kGear[bytes[at]]) & kMaskBefore) == 0) return at + 1;
  for (; at < end; ++at)
    if (((hash = (hash << 1) + kGear[bytes[at]]) & kMaskBehind) == 0) return at + 1;
  return end;
}

struct NameHash {
  std::size_t operator()(const XXH128_hash_t& name) const { return name.low64; }
};
struct SameName {
  bool operator()(const XXH128_hash_t& a, const XXH128_hash_t& b) const {
    return a.low64 == b.low64 && a.high64 == b.high64;
  }
};
using Names = std::unordered_set<XXH128_hash_t, NameHash, SameName>;

std::vector<std::uint8_t> read(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0)));
  file.seekg(0).read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error(std::string(path) + " cannot be read");
  return bytes;
}

std::size_t checked(std::size_t code) {
  if (ZSTD_isError(code)) throw std::runtime_error(ZSTD_getErrorName(code));
  return code;
}

// One zstd frame over all of it: more than a proxy could do that has to flush.
class Compressed {
 public:
  Compressed() { checked(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, 1)); }
  void add(const std::uint8_t* bytes, std::size_t size) { step({bytes, size, 0}, ZSTD_e_continue); }
  std::size_t end() {
    step({nullptr, 0, 0}, ZSTD_e_end);
    return size_;
  }

 private:
  void step(ZSTD_inBuffer in, ZSTD_EndDirective directive) {
    while (true) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      std::size_t left = checked(ZSTD_compressStream2(context_.get(), &out, &in, directive));
      size_ += out.pos;
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return;
    }
  }

  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::vector<char> buffer_ = std::vector<char>(ZSTD_CStreamOutSize());
  std::size_t size_ = 0;
};

void reduce(const char* path, Names& known) {
  const std::vector<std::uint8_t> bytes = read(path);
  std::vector<std::pair<std::size_t, std::size_t>> fresh;
  std::size_t chunks = 0, repeats = 0, fresh_bytes = 0;
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < bytes.size(); ++chunks) {
    const std::size_t size = cut(bytes.data() + at, bytes.size() - at);
    if (known.insert(XXH3_128bits(bytes.data() + at, size)).second) {
      fresh.emplace_back(at, size);
      fresh_bytes += size;
    } else {
      ++repeats;
    }
    at += size;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  Compressed compressed;
  for (const auto& [at, size] : fresh) compressed.add(bytes.data() + at, size);
  const std::size_t encoded = repeats * kNameBytes + compressed.end();
  std::printf(
      "{\"file\": \"%s\", \"bytes\": %zu, \"chunks\": %zu, \"new_bytes\": %zu, \"encoded_bytes\": %zu, "
      "\"chunking_bytes_per_second\": %.0f}\n",
      path, bytes.size(), chunks, fresh_bytes, encoded, static_cast<double>(bytes.size()) / took.count());
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fputs("usage: cdc_reference FILE...   each after those before it\n", stderr);
    return 2;
  }
  try {
    Names known;
    for (int i = 1; i < count; ++i) reduce(words[i], known);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cdc_reference: %s\n", error.what());
    return 1;
  }
  return 0;
}
