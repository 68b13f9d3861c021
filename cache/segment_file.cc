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
constexpr std::size_t kSaltedBytes = 8 + sizeof(Salt);  // magic and salt: the unencrypted part
constexpr std::size_t kDescriptionBytes = reduction::kSegmentNameBytes + 4;
constexpr std::size_t kHeaderBytes = kSaltedBytes + kAeadTagBytes + kDescriptionBytes;
constexpr std::size_t kHookBytes = 8 + 4;
static_assert(kHeaderBytes == 128);

// The numbers of a file's parts, which are their nonces.
constexpr std::uint32_t kDescriptionPart = 0, kHooksPart = 1, kFirstPiece = 2;

// This many pieces are encrypted and then written: few enough to stay in the processor's cache.
constexpr std::size_t kPiecesAtOnce = 4;

using Tag = std::array<std::byte, kAeadTagBytes>;

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
std::span<const unsigned char> raw(Bytes bytes) {
  return {reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()};
}

std::size_t pieces_of(std::uint32_t length) { return (length + kPieceBytes - 1) / kPieceBytes; }

// Authenticated with hooks and pieces, so that they are not accepted for another segment.
Buffer bound_to(const SegmentName& name) {
  Buffer bytes;
  ByteWriter writer(bytes);
  reduction::write_name(name, writer);
  return bytes;
}

// A tag and the encrypted part behind it, from the plain text in its place; false if OpenSSL failed.
bool seal_part(Aead& cipher, std::uint32_t part, Bytes associated, MutableBytes tag_and_text) {
  return cipher.seal_whole(part_nonce(part), raw(associated), tag_and_text.subspan(kAeadTagBytes),
                           raw(tag_and_text.data()));
}

// A segment's file as it is written, part after part.
class SegmentContent {
 public:
  SegmentContent(const DictionaryKey& key, const Salt& salt, const SegmentName& name,
                 std::span<const Slice> parts, std::span<const Hook> hooks)
      : cipher_(key.cipher(kMagic, salt, Aead::Use::seal)),
        salt_(salt),
        name_(name),
        bound_(bound_to(name)),
        hooks_(hooks),
        parts_(parts),
        left_(name.length),
        digest_(XXH3_createState()) {
    XXH3_128bits_reset(digest_.get());
  }

  Result<Bytes> next() {
    out_.clear();
    switch (stage_) {
      case Stage::header:
        stage_ = Stage::pieces;
        return answer(make_header());
      case Stage::pieces:
        if (left_ > 0) return answer(make_pieces());
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

  bool make_header() {
    ByteWriter writer(out_);
    writer.bytes(as_bytes(kMagic));
    writer.bytes(salt_);
    writer.bytes(Tag{});
    reduction::write_name(name_, writer);
    writer.fixed16(static_cast<std::uint16_t>(hooks_.size() >> 16));
    writer.fixed16(static_cast<std::uint16_t>(hooks_.size() & 0xffff));
    return seal_part(*cipher_, kDescriptionPart, as_bytes(kMagic), MutableBytes(out_).subspan(kSaltedBytes));
  }

  bool make_pieces() {
    out_.resize(kPiecesAtOnce * (kAeadTagBytes + kPieceBytes));
    std::size_t filled = 0;
    for (std::size_t i = 0; i < kPiecesAtOnce && left_ > 0; ++i) {
      std::size_t size = std::min(left_, kPieceBytes);
      if (!make_piece(size, out_.data() + filled)) return false;
      filled += kAeadTagBytes + size;
      left_ -= size;
    }
    out_.resize(filled);
    return true;
  }

  bool make_piece(std::size_t size, std::byte* out) {
    if (!cipher_->start(part_nonce(kFirstPiece + piece_++), raw(bound_))) return false;
    for (std::size_t done = 0; done < size;) {
      Bytes part = parts_.front().bytes().subspan(taken_);
      part = part.first(std::min(part.size(), size - done));
      XXH3_128bits_update(digest_.get(), part.data(), part.size());
      if (!part.empty() && !cipher_->add(part, raw(out) + kAeadTagBytes + done)) return false;
      done += part.size();
      taken_ += part.size();
      if (taken_ < parts_.front().size()) continue;
      parts_ = parts_.subspan(1);
      taken_ = 0;
    }
    return cipher_->seal(raw(out));
  }

  bool make_hooks() {
    out_.resize(kAeadTagBytes);
    ByteWriter writer(out_);
    write_hooks(hooks_, writer);
    return seal_part(*cipher_, kHooksPart, bound_, out_);
  }

  bool has_right_digest() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest_.get()));
    return std::memcmp(canonical.digest, name_.digest.data(), name_.digest.size()) == 0;
  }

  std::unique_ptr<Aead> cipher_;
  const Salt& salt_;
  const SegmentName& name_;
  Buffer bound_;
  std::span<const Hook> hooks_;
  std::span<const Slice> parts_;  // from the one that is being encrypted on
  std::size_t taken_ = 0;         // of that one
  std::size_t left_;              // of all
  std::uint32_t piece_ = 0;
  std::unique_ptr<XXH3_state_t, decltype([](XXH3_state_t* state) { XXH3_freeState(state); })> digest_;
  Buffer out_;
  Stage stage_ = Stage::header;
};

}  // namespace

std::uint64_t segment_file_bytes(std::uint32_t length, std::size_t hooks) {
  return kHeaderBytes + pieces_of(length) * kAeadTagBytes + length + kAeadTagBytes + hooks * kHookBytes;
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
  std::byte* memory = nullptr;
  Slice slice = Slice::unfilled(end - begin, memory);
  std::vector<Tag> tags(last - first + 1);
  std::vector<MutableBytes> into;
  into.reserve(2 * tags.size());
  auto piece = [&](std::size_t index) {
    std::size_t start = index * kPieceBytes;
    return MutableBytes(memory + start, std::min(kPieceBytes, end - begin - start));
  };
  for (std::size_t i = 0; i < tags.size(); ++i) {
    into.push_back(tags[i]);
    into.push_back(piece(i));
  }
  if (auto read = files.read(path, kHeaderBytes + first * (kAeadTagBytes + kPieceBytes), into); !read)
    return read.error();
  auto cipher = key.cipher(kMagic, salt, Aead::Use::open);
  const Buffer bound = bound_to(name);
  for (std::size_t i = 0; i < tags.size(); ++i)
    if (!cipher->open_whole(part_nonce(static_cast<std::uint32_t>(kFirstPiece + first + i)), raw(bound),
                            piece(i), raw(tags[i].data())))
      return make_error_code(StoreError::damaged);
  return slice.sub(offset - begin, size);
}

Result<Description> read_description(Files& files, const std::string& path, const DictionaryKey& key,
                                     std::uint64_t file_bytes) {
  std::array<std::byte, kMagic.size()> magic;
  Salt salt;
  Tag tag;
  std::array<std::byte, kDescriptionBytes> text;
  const std::array<MutableBytes, 4> header{magic, salt, tag, text};
  if (auto read = files.read(path, 0, header); !read) return read.error();
  auto cipher = key.cipher(kMagic, salt, Aead::Use::open);
  if (as_text(magic) != kMagic ||
      !cipher->open_whole(part_nonce(kDescriptionPart), raw(as_bytes(kMagic)), text, raw(tag.data())))
    return make_error_code(StoreError::damaged);
  ByteReader reader(text);
  auto name = reduction::read_name(reader);
  if (!name) return make_error_code(StoreError::damaged);
  std::size_t hooks = std::size_t{*reader.fixed16()} << 16;
  hooks |= *reader.fixed16();
  if (hooks > max_hooks(name->length)) return make_error_code(StoreError::damaged);
  if (segment_file_bytes(name->length, hooks) != file_bytes) return make_error_code(StoreError::truncated);

  Buffer tail(hooks * kHookBytes);
  const std::array<MutableBytes, 2> behind{tag, tail};
  if (auto read = files.read(path, file_bytes - kAeadTagBytes - tail.size(), behind); !read)
    return read.error();
  Description description{.name = *name, .hooks = {}};
  ByteReader hook_reader(tail);
  if (!cipher->open_whole(part_nonce(kHooksPart), raw(bound_to(*name)), tail, raw(tag.data())) ||
      !read_hooks(hook_reader, hooks, name->length, description.hooks))
    return make_error_code(StoreError::damaged);
  return description;
}

}  // namespace longhaul::cache
