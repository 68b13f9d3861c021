// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/deflated.h"

#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "codecs/byte_reader.h"
#include "codecs/work.h"

namespace longhaul::reduction {
namespace {

constexpr int kBestLevel = 9;
// Smaller streams save less than their map costs.
constexpr std::size_t kLeastDeflated = 64;
// Limits on the cost of a block, in bytes inflated: a sender that chooses its bytes must not be able to
// determine how long it takes. Packing takes longer than unpacking, even if it fails; an invalid stream is
// usually detected early.
constexpr std::size_t kMostWork = 6 * kMaxOpenedBytes, kClosingWork = 4, kAttemptWork = 512;
constexpr std::uint64_t kWorkPerClosedByte = 10;  // in addition to the comparisons

Bytef* to_zlib(const std::byte* bytes) {
  // zlib's interface takes input as non-const although it does not write to it.
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes));
}

// zlib's states are large (250 KiB and 40 KiB): one per level and thread that needs it.
struct Deflater {
  z_stream stream{};
  explicit Deflater(int level) {
    // Raw, with windows of 32 KiB and the memory level that almost all programs use: others produce different
    // blocks.
    if (deflateInit2(&stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  }
  ~Deflater() { deflateEnd(&stream); }
};

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, -15) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
};

// The stream, in memory that the next call reuses; nullopt if it is longer than `most`.
std::optional<Bytes> deflate_all(int level, Bytes plain, std::size_t most) {
  thread_local std::array<std::unique_ptr<Deflater>, kBestLevel + 1> deflaters;
  thread_local std::vector<std::byte> out;
  auto& deflater = deflaters[static_cast<std::size_t>(level)];
  if (!deflater) deflater = std::make_unique<Deflater>(level);
  out.resize(std::max(out.size(), most + 1));  // zlib does not report the end if no output is left
  z_stream& stream = deflater->stream;
  deflateReset(&stream);
  stream.next_in = to_zlib(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = to_zlib(out.data());
  stream.avail_out = static_cast<uInt>(most + 1);
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return std::nullopt;
  return Bytes(out).first(most + 1 - stream.avail_out);
}

struct Inflated {
  std::size_t deflated = 0, plain = 0;
};

// A stream that ends in `from`, and expands to at most the available room. `work` counts inflated bytes.
std::optional<Inflated> inflate_all(Bytes from, MutableBytes out, std::size_t& work) {
  thread_local Inflater inflater;
  z_stream& stream = inflater.stream;
  inflateReset(&stream);
  stream.next_in = to_zlib(from.data());
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = to_zlib(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int end = inflate(&stream, Z_FINISH);
  work += out.size() - stream.avail_out;
  if (end != Z_STREAM_END) return std::nullopt;
  return Inflated{from.size() - stream.avail_in, out.size() - stream.avail_out};
}

// The maximum number of candidates that zlib compares at one position, by level (its configuration_table).
constexpr std::array<std::uint32_t, kBestLevel + 1> kMaxChain = {0, 4, 5, 6, 16, 32, 128, 256, 1024, 4096};

// Where a stream may begin, and the levels that may have made it, the likeliest first; 0: none.
struct Candidate {
  std::size_t begin = 0;
  std::array<int, 2> levels{};
};

std::uint8_t at(Bytes content, std::size_t position) {
  return std::to_integer<std::uint8_t>(content[position]);
}

// RFC 1952: with or without a name; other fields are rare.
std::optional<Candidate> gzip_at(Bytes content, std::size_t position) {
  constexpr std::size_t kHead = 10;
  constexpr unsigned kName = 8;
  if (content.size() - position < kHead + kLeastDeflated || at(content, position + 1) != 0x8b ||
      at(content, position + 2) != Z_DEFLATED || (at(content, position + 3) & ~kName))
    return std::nullopt;
  std::size_t begin = position + kHead;
  if (at(content, position + 3) & kName) {
    Bytes name = content.subspan(begin, std::min<std::size_t>(content.size() - begin, 256));
    auto end = std::find(name.begin(), name.end(), std::byte{0});
    if (end == name.end()) return std::nullopt;
    begin += static_cast<std::size_t>(end - name.begin()) + 1;
  }
  switch (at(content, position + 8)) {  // the compressor's own statement of its effort
    case 2:
      return Candidate{begin, {9, 0}};
    case 4:
      return Candidate{begin, {1, 0}};
    default:  // servers that use level 1 do not state it either
      return Candidate{begin, {6, 1}};
  }
}

// A local file header of APPNOTE.TXT, 4.3.7.
std::optional<Candidate> zip_at(Bytes content, std::size_t position) {
  constexpr std::size_t kHead = 30;
  if (content.size() - position < kHead + kLeastDeflated || at(content, position + 1) != 'K' ||
      at(content, position + 2) != 3 || at(content, position + 3) != 4 ||
      at(content, position + 8) != Z_DEFLATED || at(content, position + 9) != 0)
    return std::nullopt;
  auto two = [&](std::size_t field) {
    return std::size_t{at(content, position + field)} | std::size_t{at(content, position + field + 1)} << 8;
  };
  const std::size_t begin = position + kHead + two(26) + two(28);
  const unsigned effort = at(content, position + 6) >> 1 & 3;  // 4.4.4
  return Candidate{begin, {effort == 1 ? 9 : effort >= 2 ? 1 : 6, effort == 0 ? 9 : 0}};
}

// RFC 1950: two bytes; the second one indicates the level, approximately.
std::optional<Candidate> zlib_at(Bytes content, std::size_t position) {
  if (content.size() - position < 2 + kLeastDeflated) return std::nullopt;
  switch (at(content, position + 1)) {
    case 0x01:
      return Candidate{position + 2, {1, 0}};
    case 0x5e:
      return Candidate{position + 2, {5, 0}};
    case 0x9c:
      return Candidate{position + 2, {6, 0}};
    case 0xda:
      return Candidate{position + 2, {9, 0}};
    default:
      return std::nullopt;
  }
}

std::optional<Candidate> candidate_at(Bytes content, std::size_t position) {
  switch (at(content, position)) {
    case 0x1f:
      return gzip_at(content, position);
    case 'P':
      return zip_at(content, position);
    case 0x78:
      return zlib_at(content, position);
    default:
      return std::nullopt;
  }
}

std::byte* scratch() {
  thread_local const auto memory = std::make_unique_for_overwrite<std::byte[]>(kMaxOpenedBytes);
  return memory.get();
}

// The level that turns `plain` into exactly these bytes; 0: none, or the test costs more than the remaining
// `steps`.
int level_of(const Candidate& candidate, Bytes plain, Bytes deflated, std::uint64_t& steps) {
  for (int level : candidate.levels) {
    if (level == 0) break;
    const std::uint64_t needed = closing_steps(plain, level);
    if (needed > steps) break;
    steps -= needed;
    count_work(needed + kWorkPerClosedByte * plain.size());
    auto again = deflate_all(level, plain, deflated.size());
    if (again && std::ranges::equal(*again, deflated)) return level;
  }
  return 0;
}

}  // namespace

std::uint64_t closing_steps(Bytes plain, int level) {
  // zlib's own hash of three bytes with a memory level of 8, how far back it looks, and its longest match.
  constexpr std::size_t kHashed = 3, kHashes = 1u << 15, kWindow = 32'768, kReach = kWindow - 262;
  constexpr std::size_t kLongest = 258;
  if (plain.size() < kHashed) return 0;
  thread_local std::array<std::uint16_t, kHashes> count;
  thread_local std::array<std::uint16_t, kWindow> hashes;
  count.fill(0);
  const std::uint32_t most = kMaxChain[static_cast<std::size_t>(level)];
  std::uint64_t steps = 0;
  std::size_t run_end = 0, counted = 0;
  for (std::size_t i = 0; i + kHashed <= plain.size(); ++i) {
    const auto hash = static_cast<std::uint16_t>(
        (at(plain, i) << 10 ^ at(plain, i + 1) << 5 ^ at(plain, i + 2)) & (kHashes - 1));
    if (i >= kReach) --count[hashes[(i - kReach) % kWindow]];
    if (i >= counted) {
      steps += std::min<std::uint32_t>(count[hash], most);
      while (run_end < plain.size() && (run_end <= i || plain[run_end] == plain[i])) ++run_end;
      // In a run of one byte the nearest candidate is the longest possible match, and zlib continues after
      // it.
      if (run_end - i > kLongest) counted = i + 1 + kLongest;
    }
    ++count[hash];
    hashes[i % kWindow] = hash;
  }
  count_work(2 * plain.size());
  return steps;
}

bool open_deflated(Bytes content, Buffer& out) {
  if (content.size() > kMaxBlockPlainBytes) return false;
  thread_local Buffer map, bytes;
  map.clear();
  bytes.clear();
  ByteWriter writer(map);
  // Room for the map's length.
  std::size_t left = kMaxOpenedBytes - content.size() - 4, done = 0, work = 0;
  std::uint64_t steps = kMaxClosingSteps;
  for (std::size_t position = 0; position + kLeastDeflated < content.size() && work < kMostWork; ++position) {
    auto candidate = candidate_at(content, position);
    if (!candidate || candidate->begin + kLeastDeflated > content.size()) continue;
    work += kAttemptWork;
    auto inflated = inflate_all(content.subspan(candidate->begin), {scratch(), left}, work);
    // A stream that does not expand beyond this is not worth unpacking.
    if (!inflated || inflated->deflated < kLeastDeflated || inflated->plain <= inflated->deflated) continue;
    constexpr std::size_t kMostOfMap = 4 + 4 + 4 + 1;
    if (inflated->plain + kMostOfMap > left) continue;
    const Bytes plain{scratch(), inflated->plain};
    work += kClosingWork * plain.size();
    const int level =
        level_of(*candidate, plain, content.subspan(candidate->begin, inflated->deflated), steps);
    if (level == 0) continue;
    writer.varint(candidate->begin - done);
    writer.varint(inflated->plain);
    writer.varint(inflated->deflated);
    writer.u8(static_cast<std::uint8_t>(level));
    append(bytes, content.subspan(done, candidate->begin - done));
    append(bytes, plain);
    left -= inflated->plain + kMostOfMap;
    done = candidate->begin + inflated->deflated;
    position = done - 1;
  }
  if (done == 0) return false;
  append(bytes, content.subspan(done));
  ByteWriter(out).sized(map);
  append(out, bytes);
  return true;
}

std::optional<std::size_t> close_deflated(Bytes opened, MutableBytes content) {
  ByteReader in(opened);
  auto map = in.sized();
  if (!map || map->empty()) return std::nullopt;
  std::size_t size = 0;
  std::uint64_t steps = kMaxClosingSteps;
  auto take = [&](std::uint64_t bytes) {
    if (bytes > in.remaining() || bytes > content.size() - size) return false;
    Bytes piece = *in.bytes(static_cast<std::size_t>(bytes));
    if (!piece.empty()) std::memcpy(content.data() + size, piece.data(), piece.size());
    size += piece.size();
    return true;
  };
  for (ByteReader pieces(*map); pieces.remaining();) {
    auto gap = pieces.varint(), plain = pieces.varint(), deflated = pieces.varint();
    auto level = pieces.u8();
    if (!gap || !plain || !deflated || !level || *level == 0 || *level > kBestLevel ||
        *deflated < kLeastDeflated || !take(*gap))
      return std::nullopt;
    if (*plain > in.remaining() || *deflated > content.size() - size) return std::nullopt;
    const Bytes bytes = *in.bytes(static_cast<std::size_t>(*plain));
    const std::uint64_t needed = closing_steps(bytes, *level);
    if (needed > steps) return std::nullopt;
    steps -= needed;
    count_work(needed + kWorkPerClosedByte * bytes.size());
    auto made = deflate_all(*level, bytes, static_cast<std::size_t>(*deflated));
    if (!made || made->size() != *deflated) return std::nullopt;
    std::memcpy(content.data() + size, made->data(), made->size());
    size += made->size();
  }
  if (!take(in.remaining())) return std::nullopt;
  return size;
}

std::uint64_t deflate_print() {
  static const std::uint64_t print = [] {
    // Words that repeat at all distances, and bytes that hardly repeat: they exercise the choice between
    // matches.
    std::string text;
    std::uint32_t state = 1;
    auto random = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
    while (text.size() < 64 * 1024) {
      if (random() % 4 == 0 && text.size() > 5000) {
        text += text.substr(random() % (text.size() - 300), 3 + random() % 60);
      } else if (random() % 16 == 0) {
        for (unsigned i = random() % 40; i > 0; --i) text += static_cast<char>(random());
      } else {
        for (unsigned i = 2 + random() % 7; i > 0; --i) text += static_cast<char>('a' + random() % 12);
        text += ' ';
      }
    }
    std::uint64_t sum = 0;
    for (int level = 1; level <= kBestLevel; ++level)
      if (auto made = deflate_all(level, as_bytes(text), text.size()))
        sum = XXH3_64bits_withSeed(made->data(), made->size(), sum + 1);
    return sum;
  }();
  return print;
}

}  // namespace longhaul::reduction
