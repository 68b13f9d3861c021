// SPDX-License-Identifier: Apache-2.0
#include "cache/segment_file.h"

#include <xxhash.h>

#include <array>
#include <cassert>
#include <cstring>

#include "cache/error.h"

namespace longhaul::cache {
namespace {

constexpr std::string_view kMagic("LHSEG\0\0\1", 8);
constexpr std::size_t kHeaderBytes = 8 + reduction::kSegmentNameBytes + 4 + 8;
constexpr std::size_t kHookBytes = 8 + 4;
constexpr std::size_t kChecksumBytes = 8;
static_assert(kHeaderBytes == 72);

using Checksum = std::array<std::byte, kChecksumBytes>;

Checksum stored(std::uint64_t checksum) {
  Checksum bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(checksum >> (56 - 8 * i) & 0xff);
  return bytes;
}

std::uint64_t seed_of(const SegmentName& name) {
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < 8; ++i) seed = seed << 8 | std::to_integer<std::uint64_t>(name.digest[i]);
  return seed;
}

std::size_t pieces_of(std::uint32_t length) { return (length + kPieceBytes - 1) / kPieceBytes; }

std::uint64_t checksum_of(Bytes bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// Cuts parts of any sizes into pieces and computes their checksums.
class PieceCutter {
 public:
  PieceCutter(const SegmentName& name, std::vector<Bytes>& out, std::span<Checksum> checksums)
      : seed_(seed_of(name)),
        left_(name.length),
        out_(out),
        checksums_(checksums),
        state_(XXH3_createState()) {
    begin_piece();
  }

  void add(Bytes part) {
    while (!part.empty()) {
      Bytes taken = part.first(std::min(part.size(), piece_left_));
      part = part.subspan(taken.size());
      bool whole = taken.size() == piece_left_ && piece_new_;
      if (whole) {
        out_.push_back(checksums_[index_]);
        out_.push_back(taken);
        checksums_[index_] = stored(checksum_of(taken, seed_ + index_));
      } else {
        if (piece_new_) {
          out_.push_back(checksums_[index_]);
          XXH3_64bits_reset_withSeed(state_.get(), seed_ + index_);
        }
        out_.push_back(taken);
        XXH3_64bits_update(state_.get(), taken.data(), taken.size());
      }
      piece_new_ = false;
      piece_left_ -= taken.size();
      left_ -= taken.size();
      if (piece_left_ > 0) continue;
      if (!whole) checksums_[index_] = stored(XXH3_64bits_digest(state_.get()));
      ++index_;
      begin_piece();
    }
  }

 private:
  void begin_piece() {
    piece_left_ = std::min(left_, kPieceBytes);
    piece_new_ = true;
  }

  std::uint64_t seed_;
  std::size_t left_;
  std::vector<Bytes>& out_;
  std::span<Checksum> checksums_;
  std::unique_ptr<XXH3_state_t, decltype([](XXH3_state_t* state) { XXH3_freeState(state); })> state_;
  std::size_t index_ = 0;
  std::size_t piece_left_ = 0;
  bool piece_new_ = true;
};

}  // namespace

std::uint64_t segment_file_bytes(std::uint32_t length, std::size_t hooks) {
  return kHeaderBytes + pieces_of(length) * kChecksumBytes + length + hooks * kHookBytes + kChecksumBytes;
}

void write_hooks(std::span<const Hook> hooks, ByteWriter& writer) {
  for (const Hook& hook : hooks) {
    writer.fixed64(hook.fingerprint);
    writer.fixed16(static_cast<std::uint16_t>(hook.offset >> 16));
    writer.fixed16(static_cast<std::uint16_t>(hook.offset & 0xffff));
  }
}

bool read_hooks(ByteReader& reader, std::size_t count, std::uint32_t length, std::vector<Hook>& hooks) {
  if (reader.remaining() / kHookBytes < count || count > max_hooks(length)) return false;
  hooks.reserve(hooks.size() + count);
  for (std::size_t i = 0; i < count; ++i) {
    Hook hook{.fingerprint = *reader.fixed64()};
    hook.offset = std::uint32_t{*reader.fixed16()} << 16;
    hook.offset |= *reader.fixed16();
    if (hook.offset >= length) return false;
    hooks.push_back(hook);
  }
  return true;
}

Result<void> write_segment(Files& files, const std::string& path, const SegmentName& name,
                           std::span<const Slice> parts, std::span<const Hook> hooks) {
  if (reduction::segment_digest(parts) != name.digest) return make_error_code(StoreError::wrong_digest);
  Buffer header, tail;
  ByteWriter head(header);
  head.bytes(as_bytes(kMagic));
  reduction::write_name(name, head);
  head.fixed16(static_cast<std::uint16_t>(hooks.size() >> 16));
  head.fixed16(static_cast<std::uint16_t>(hooks.size() & 0xffff));
  head.fixed64(checksum_of(header, 0));
  tail.reserve(hooks.size() * kHookBytes + kChecksumBytes);
  ByteWriter behind(tail);
  write_hooks(hooks, behind);
  behind.fixed64(checksum_of(tail, seed_of(name)));

  std::vector<Checksum> checksums(pieces_of(name.length));
  std::vector<Bytes> out;
  out.reserve(2 + 2 * checksums.size() + parts.size());
  out.push_back(header);
  PieceCutter cutter(name, out, checksums);
  for (const Slice& part : parts) cutter.add(part.bytes());
  out.push_back(tail);
  return files.write(path, out);
}

Result<Slice> read_segment(Files& files, const std::string& path, const SegmentName& name,
                           std::uint32_t offset, std::uint32_t size) {
  assert(size > 0 && offset < name.length && size <= name.length - offset);
  std::size_t first = offset / kPieceBytes, last = (std::size_t{offset} + size - 1) / kPieceBytes;
  std::size_t begin = first * kPieceBytes, end = std::min<std::size_t>((last + 1) * kPieceBytes, name.length);
  std::byte* memory = nullptr;
  Slice slice = Slice::unfilled(end - begin, memory);
  std::vector<Checksum> checksums(last - first + 1);
  std::vector<MutableBytes> into;
  into.reserve(2 * checksums.size());
  auto piece = [&](std::size_t index) {
    std::size_t start = index * kPieceBytes;
    return MutableBytes(memory + start, std::min(kPieceBytes, end - begin - start));
  };
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    into.push_back(checksums[i]);
    into.push_back(piece(i));
  }
  if (auto read = files.read(path, kHeaderBytes + first * (kChecksumBytes + kPieceBytes), into); !read)
    return read.error();
  for (std::size_t i = 0; i < checksums.size(); ++i)
    if (stored(checksum_of(piece(i), seed_of(name) + first + i)) != checksums[i])
      return make_error_code(StoreError::damaged);
  return slice.sub(offset - begin, size);
}

Result<Description> read_description(Files& files, const std::string& path, std::uint64_t file_bytes) {
  std::array<std::byte, kHeaderBytes> header;
  MutableBytes into(header);
  if (auto read = files.read(path, 0, {&into, 1}); !read) return read.error();
  ByteReader reader(header);
  bool known = as_text(*reader.bytes(kMagic.size())) == kMagic;
  auto name = reduction::read_name(reader);
  if (!known || !name) return make_error_code(StoreError::damaged);
  std::size_t hooks = std::size_t{*reader.fixed16()} << 16;
  hooks |= *reader.fixed16();
  if (*reader.fixed64() != checksum_of(Bytes(header).first(kHeaderBytes - kChecksumBytes), 0) ||
      hooks > max_hooks(name->length))
    return make_error_code(StoreError::damaged);
  if (segment_file_bytes(name->length, hooks) != file_bytes) return make_error_code(StoreError::truncated);

  Buffer tail(hooks * kHookBytes + kChecksumBytes);
  into = tail;
  if (auto read = files.read(path, file_bytes - tail.size(), {&into, 1}); !read) return read.error();
  Description description{.name = *name, .hooks = {}};
  ByteReader behind(tail);
  if (!read_hooks(behind, hooks, name->length, description.hooks) ||
      *behind.fixed64() != checksum_of(Bytes(tail).first(hooks * kHookBytes), seed_of(*name)))
    return make_error_code(StoreError::damaged);
  return description;
}

}  // namespace longhaul::cache
