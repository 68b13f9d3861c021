// SPDX-License-Identifier: Apache-2.0
#include "cache/segment_file.h"

#include <xxhash.h>

#include <array>
#include <cassert>
#include <cstring>

#include "cache/error.h"

namespace longhaul::cache {
namespace {

constexpr std::string_view kMagic("LHSEG\0\0\2", 8);
constexpr std::size_t kDescriptionBytes = reduction::kSegmentNameBytes + 4;
constexpr std::size_t kHeaderBytes = sealed_header_bytes(kDescriptionBytes);
constexpr std::size_t kHookBytes = 8 + 4;
static_assert(kHeaderBytes == 128);

// The numbers of a file's parts, which are their nonces; the description is the header.
constexpr std::uint32_t kHooksPart = 1, kFirstPiece = 2;

// Authenticated with hooks and pieces, so that they are not accepted for another segment.
Buffer bound_to(const SegmentName& name) {
  Buffer bytes;
  ByteWriter writer(bytes);
  reduction::write_name(name, writer);
  return bytes;
}

Buffer description_text(const SegmentName& name, std::size_t hooks) {
  Buffer text;
  ByteWriter writer(text);
  reduction::write_name(name, writer);
  writer.fixed16(static_cast<std::uint16_t>(hooks >> 16));
  writer.fixed16(static_cast<std::uint16_t>(hooks & 0xffff));
  return text;
}

// The content of a segment's file to be written, part after part.
class SegmentContent {
 public:
  SegmentContent(const DictionaryKey& key, const Salt& salt, const SegmentName& name,
                 std::span<const Slice> parts, std::span<const Hook> hooks)
      : name_(name),
        bound_(bound_to(name)),
        hooks_(hooks),
        file_(key, kMagic, salt),
        content_(file_, kFirstPiece, bound_, parts),
        digest_(XXH3_createState()) {
    XXH3_128bits_reset(digest_.get());
  }

  Result<Bytes> next() {
    out_.clear();
    switch (stage_) {
      case Stage::header:
        stage_ = Stage::pieces;
        return answer(file_.header(description_text(name_, hooks_.size()), as_bytes(kMagic), out_));
      case Stage::pieces:
        if (!content_.is_done()) return answer(make_pieces());
        if (!has_right_digest()) return make_error_code(StoreError::wrong_digest);
        stage_ = Stage::end;
        return answer(make_hooks());
      case Stage::end:
        break;
    }
    return Bytes();
  }

 private:
  enum class Stage : std::uint8_t { header, pieces, end };

  Result<Bytes> answer(bool made) const {
    if (!made) return make_error_code(StoreError::no_cipher);
    return Bytes(out_);
  }

  bool make_pieces() {
    return content_.next(
        out_, [&](Bytes bytes) { XXH3_128bits_update(digest_.get(), bytes.data(), bytes.size()); });
  }

  bool make_hooks() {
    Buffer text;
    ByteWriter writer(text);
    write_hooks(hooks_, writer);
    return file_.part(kHooksPart, text, bound_, out_);
  }

  bool has_right_digest() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest_.get()));
    return std::memcmp(canonical.digest, name_.digest.data(), name_.digest.size()) == 0;
  }

  const SegmentName& name_;
  Buffer bound_;
  std::span<const Hook> hooks_;
  SealedFile file_;
  SealedFile::Content content_;
  std::unique_ptr<XXH3_state_t, decltype([](XXH3_state_t* state) { XXH3_freeState(state); })> digest_;
  Buffer out_;
  Stage stage_ = Stage::header;
};

}  // namespace

std::uint64_t segment_file_bytes(std::uint32_t length, std::size_t hooks) {
  return kHeaderBytes + sealed_content_bytes(length) + kAeadTagBytes + hooks * kHookBytes;
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

Result<void> write_segment(Files& files, const std::string& path, const DictionaryKey& key, const Salt& salt,
                           const SegmentName& name, std::span<const Slice> parts,
                           std::span<const Hook> hooks) {
  std::size_t size = 0;
  for (const Slice& part : parts) size += part.size();
  if (size != name.length) return make_error_code(StoreError::wrong_digest);
  SegmentContent content(key, salt, name, parts, hooks);
  return files.write(path, [&] { return content.next(); });
}

Result<Slice> read_segment(Files& files, const std::string& path, const DictionaryKey& key,
                           const SegmentName& name, std::uint32_t offset, std::uint32_t size) {
  assert(size > 0 && offset < name.length && size <= name.length - offset);
  std::array<std::byte, kMagic.size()> magic;
  Salt salt;
  const std::array<MutableBytes, 2> head{magic, salt};
  if (auto read = files.read(path, 0, head); !read) return read.error();
  if (as_text(magic) != kMagic) return make_error_code(StoreError::damaged);

  std::size_t first = offset / kPieceBytes, last = (std::size_t{offset} + size - 1) / kPieceBytes;
  std::size_t begin = first * kPieceBytes, end = std::min<std::size_t>((last + 1) * kPieceBytes, name.length);
  OpenedPieces pieces(end - begin);
  std::vector<MutableBytes> into;
  pieces.add_to(into);
  if (auto read = files.read(path, kHeaderBytes + first * (kAeadTagBytes + kPieceBytes), into); !read)
    return read.error();
  const auto cipher = key.cipher(kMagic, salt, Aead::Use::open);
  if (!pieces.open(*cipher, static_cast<std::uint32_t>(kFirstPiece + first), bound_to(name)))
    return make_error_code(StoreError::damaged);
  return pieces.take().sub(offset - begin, size);
}

Result<Description> read_description(Files& files, const std::string& path, const DictionaryKey& key,
                                     std::uint64_t file_bytes) {
  Salt salt;
  std::array<std::byte, kDescriptionBytes> text;
  const auto cipher = open_header(files, path, key, kMagic, as_bytes(kMagic), text, salt);
  if (!cipher) return cipher.error();
  ByteReader reader(text);
  auto name = reduction::read_name(reader);
  if (!name) return make_error_code(StoreError::damaged);
  std::size_t hooks = std::size_t{*reader.fixed16()} << 16;
  hooks |= *reader.fixed16();
  if (hooks > max_hooks(name->length)) return make_error_code(StoreError::damaged);
  if (segment_file_bytes(name->length, hooks) != file_bytes) return make_error_code(StoreError::truncated);

  SealTag tag;
  Buffer tail(hooks * kHookBytes);
  const std::array<MutableBytes, 2> behind{tag, tail};
  if (auto read = files.read(path, file_bytes - kAeadTagBytes - tail.size(), behind); !read)
    return read.error();
  Description description{.name = *name, .hooks = {}};
  ByteReader hook_reader(tail);
  if (!open_part(**cipher, kHooksPart, bound_to(*name), tail, tag) ||
      !read_hooks(hook_reader, hooks, name->length, description.hooks))
    return make_error_code(StoreError::damaged);
  return description;
}

}  // namespace longhaul::cache
