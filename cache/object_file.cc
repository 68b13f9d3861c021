// SPDX-License-Identifier: Apache-2.0
#include "cache/object_file.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

#include "cache/error.h"
#include "codecs/byte_reader.h"

namespace longhaul::cache {
namespace {

constexpr std::string_view kMagic("LHOBJ\0\0\1", 8), kListMagic("LHOBL\0\0\1", 8);
constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::size_t kSaltedBytes = 8 + sizeof(Salt);  // magic and salt: the unencrypted part
constexpr std::size_t kLabelBytes = sizeof(ObjectName) + 4 + 2 + kMostTagBytes;
constexpr std::size_t kHeaderBytes = kSaltedBytes + kAeadTagBytes + kLabelBytes;
static_assert(kHeaderBytes == 350);
constexpr std::size_t kListedBytes = 8 + sizeof(Salt);

// The numbers of a file's parts, which are their nonces.
constexpr std::uint32_t kLabelPart = 0, kFirstPiece = 1;

// This many pieces are encrypted and then written: few enough to stay in the processor's cache.
constexpr std::size_t kPiecesAtOnce = 4;

using Tag = std::array<std::byte, kAeadTagBytes>;

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
std::span<const unsigned char> raw(Bytes bytes) {
  return {reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()};
}

void write_u32(ByteWriter& writer, std::uint32_t value) {
  writer.fixed16(static_cast<std::uint16_t>(value >> 16));
  writer.fixed16(static_cast<std::uint16_t>(value & 0xffff));
}

std::optional<std::uint32_t> read_u32(ByteReader& reader) {
  const auto high = reader.fixed16(), low = reader.fixed16();
  if (!high || !low) return std::nullopt;
  return std::uint32_t{*high} << 16 | *low;
}

// Authenticated with every part: a file is not accepted under another number.
Buffer bound_to(std::uint64_t number) {
  Buffer bytes;
  ByteWriter writer(bytes);
  writer.bytes(as_bytes(kMagic));
  writer.fixed64(number);
  return bytes;
}

std::size_t pieces_of(std::uint32_t bytes) { return (std::size_t{bytes} + kPieceBytes - 1) / kPieceBytes; }

// An object's file as it is written.
class ObjectContent {
 public:
  ObjectContent(const DictionaryKey& key, const Salt& salt, std::uint64_t number, const ObjectLabel& label,
                std::span<const Slice> parts)
      : cipher_(key.cipher(kMagic, salt, Aead::Use::seal)),
        salt_(salt),
        bound_(bound_to(number)),
        label_(label),
        parts_(parts),
        left_(label.bytes) {}

  Result<Bytes> next() {
    out_.clear();
    if (!std::exchange(has_header_, true)) return answer(make_header());
    if (left_ == 0) return Bytes();
    return answer(make_pieces());
  }

 private:
  Result<Bytes> answer(bool made) const {
    if (!made) return make_error_code(StoreError::no_cipher);
    return Bytes(out_);
  }

  bool make_header() {
    ByteWriter writer(out_);
    writer.bytes(as_bytes(kMagic));
    writer.bytes(salt_);
    writer.bytes(Tag{});
    writer.bytes(label_.name);
    write_u32(writer, label_.bytes);
    writer.fixed16(static_cast<std::uint16_t>(label_.tag.size()));
    writer.bytes(label_.tag);
    out_.resize(kHeaderBytes, std::byte{0});
    std::fill(out_.end() - static_cast<std::ptrdiff_t>(kMostTagBytes - label_.tag.size()), out_.end(),
              std::byte{0});
    return seal(kLabelPart, MutableBytes(out_).subspan(kSaltedBytes));
  }

  bool make_pieces() {
    out_.resize(kPiecesAtOnce * (kAeadTagBytes + kPieceBytes));
    std::size_t filled = 0;
    for (std::size_t i = 0; i < kPiecesAtOnce && left_ > 0; ++i) {
      const std::size_t size = std::min(left_, kPieceBytes);
      const auto piece = MutableBytes(out_).subspan(filled, kAeadTagBytes + size);
      fill(piece.subspan(kAeadTagBytes));
      if (!seal(kFirstPiece + piece_++, piece)) return false;
      filled += piece.size();
      left_ -= size;
    }
    out_.resize(filled);
    return true;
  }

  void fill(MutableBytes into) {
    while (!into.empty()) {
      const Bytes part = parts_.front().bytes().subspan(taken_);
      const std::size_t size = std::min(part.size(), into.size());
      if (size > 0) std::memcpy(into.data(), part.data(), size);
      into = into.subspan(size);
      taken_ += size;
      if (taken_ < parts_.front().size()) continue;
      parts_ = parts_.subspan(1);
      taken_ = 0;
    }
  }

  bool seal(std::uint32_t part, MutableBytes tag_and_text) {
    return cipher_->seal_whole(part_nonce(part), raw(bound_), tag_and_text.subspan(kAeadTagBytes),
                               raw(tag_and_text.data()));
  }

  std::unique_ptr<Aead> cipher_;
  const Salt& salt_;
  Buffer bound_;
  const ObjectLabel& label_;
  std::span<const Slice> parts_;  // from the one that is being encrypted on
  std::size_t taken_ = 0;         // of that one
  std::size_t left_;              // of all
  std::uint32_t piece_ = 0;
  bool has_header_ = false;
  Buffer out_;
};

// Magic, salt, and one sealed part, all in memory.
Result<Buffer> open_whole(Files& files, const std::string& path, const DictionaryKey& key,
                          std::string_view magic, std::size_t bytes, Bytes bound, Salt& salt) {
  std::array<std::byte, 8> found;
  Tag tag;
  Buffer text(bytes);
  const std::array<MutableBytes, 4> into{found, salt, tag, text};
  if (auto read = files.read(path, 0, into); !read) return read.error();
  if (as_text(found) != magic || !key.cipher(magic, salt, Aead::Use::open)
                                      ->open_whole(part_nonce(kLabelPart), raw(bound), text, raw(tag.data())))
    return make_error_code(StoreError::damaged);
  return text;
}

}  // namespace

ObjectName object_name(std::string_view name) {
  ObjectName digest;
  SHA256(reinterpret_cast<const unsigned char*>(name.data()), name.size(), raw(digest.data()));
  return digest;
}

std::uint64_t object_file_bytes(std::uint32_t bytes) {
  return kHeaderBytes + pieces_of(bytes) * kAeadTagBytes + bytes;
}

Result<void> write_object(Files& files, const std::string& path, const DictionaryKey& key, const Salt& salt,
                          std::uint64_t number, const ObjectLabel& label, std::span<const Slice> parts) {
  std::size_t size = 0;
  for (const Slice& part : parts) size += part.size();
  if (size != label.bytes || label.tag.size() > kMostTagBytes)
    return make_error_code(StoreError::wrong_digest);
  ObjectContent content(key, salt, number, label, parts);
  return files.write(path, [&] { return content.next(); });
}

std::optional<ObjectLabel> parse_label(Bytes text) {
  if (text.size() != kLabelBytes) return std::nullopt;
  ObjectLabel label;
  std::memcpy(label.name.data(), text.data(), label.name.size());
  ByteReader reader(text.subspan(label.name.size()));
  label.bytes = *read_u32(reader);
  const std::size_t tag = *reader.fixed16();
  if (tag > kMostTagBytes || label.bytes > kMostObjectBytes) return std::nullopt;
  append(label.tag, reader.rest().first(tag));
  return label;
}

Result<SaltedLabel> read_label(Files& files, const std::string& path, const DictionaryKey& key,
                               std::uint64_t number, std::uint64_t file_bytes) {
  SaltedLabel found;
  if (file_bytes < kHeaderBytes) return make_error_code(StoreError::truncated);
  const auto text = open_whole(files, path, key, kMagic, kLabelBytes, bound_to(number), found.salt);
  if (!text) return text.error();
  auto label = parse_label(*text);
  if (!label) return make_error_code(StoreError::damaged);
  if (object_file_bytes(label->bytes) != file_bytes) return make_error_code(StoreError::truncated);
  found.label = *std::move(label);
  return found;
}

Result<Slice> read_object(Files& files, const std::string& path, const DictionaryKey& key,
                          std::uint64_t number, const SaltedLabel& expected) {
  std::array<std::byte, 8> magic;
  Salt salt;
  std::array<std::byte, kHeaderBytes - kSaltedBytes> label;
  const std::uint32_t bytes = expected.label.bytes;
  std::byte* memory = nullptr;
  Slice slice = Slice::unfilled(bytes, memory);
  std::vector<Tag> tags(pieces_of(bytes));
  const auto piece = [&](std::size_t i) {
    return MutableBytes(memory + i * kPieceBytes,
                        std::min<std::size_t>(kPieceBytes, bytes - i * kPieceBytes));
  };
  std::vector<MutableBytes> into{magic, salt, label};
  for (std::size_t i = 0; i < tags.size(); ++i) {
    into.push_back(tags[i]);
    into.push_back(piece(i));
  }
  if (auto read = files.read(path, 0, into); !read) return read.error();
  // Another salt: another file, which was put in the place of this one.
  if (as_text(magic) != kMagic || salt != expected.salt) return make_error_code(StoreError::damaged);
  const auto cipher = key.cipher(kMagic, salt, Aead::Use::open);
  const Buffer bound = bound_to(number);
  for (std::size_t i = 0; i < tags.size(); ++i)
    if (!cipher->open_whole(part_nonce(static_cast<std::uint32_t>(kFirstPiece + i)), raw(bound), piece(i),
                            raw(tags[i].data())))
      return make_error_code(StoreError::damaged);
  return slice;
}

Result<void> write_list(Files& files, const std::string& path, const DictionaryKey& key,
                        const ObjectList& list) {
  if (list.boot.size() > kMostBootBytes || list.objects.size() > kMostListed)
    return make_error_code(StoreError::damaged);
  const auto salt = draw_salt();
  if (!salt) return salt.error();
  Buffer out;
  ByteWriter writer(out);
  writer.bytes(as_bytes(kListMagic));
  writer.bytes(*salt);
  writer.bytes(Tag{});
  writer.u8(static_cast<std::uint8_t>(list.boot.size()));
  writer.bytes(as_bytes(list.boot));
  write_u32(writer, static_cast<std::uint32_t>(list.objects.size()));
  for (const ListedObject& object : list.objects) {
    writer.fixed64(object.number);
    writer.bytes(object.salt);
  }
  const auto sealed = MutableBytes(out).subspan(kSaltedBytes);
  if (!key.cipher(kListMagic, *salt, Aead::Use::seal)
           ->seal_whole(part_nonce(kLabelPart), raw(as_bytes(kListMagic)), sealed.subspan(kAeadTagBytes),
                        raw(sealed.data())))
    return make_error_code(StoreError::no_cipher);
  bool given = false;
  return files.write(path,
                     [&]() -> Result<Bytes> { return std::exchange(given, true) ? Bytes() : Bytes(out); });
}

std::optional<ObjectList> parse_list(Bytes text) {
  ByteReader reader(text);
  ObjectList list;
  const auto boot_bytes = reader.u8();
  if (!boot_bytes || *boot_bytes > kMostBootBytes) return std::nullopt;
  const auto boot = reader.bytes(*boot_bytes);
  if (!boot) return std::nullopt;
  list.boot = as_text(*boot);
  const auto count = read_u32(reader);
  if (!count || *count > kMostListed || reader.remaining() != *count * kListedBytes) return std::nullopt;
  list.objects.reserve(*count);
  for (std::uint32_t i = 0; i < *count; ++i) {
    ListedObject object{.number = *reader.fixed64()};
    const auto salt = *reader.bytes(sizeof(Salt));
    std::memcpy(object.salt.data(), salt.data(), salt.size());
    list.objects.push_back(object);
  }
  return list;
}

Result<ObjectList> read_list(Files& files, const std::string& path, const DictionaryKey& key,
                             std::uint64_t file_bytes) {
  constexpr std::size_t kLeast = kSaltedBytes + kAeadTagBytes,
                        kMost = kLeast + 5 + kMostBootBytes + kMostListed * kListedBytes;
  if (file_bytes < kLeast || file_bytes > kMost) return make_error_code(StoreError::truncated);
  Salt salt;
  const auto text = open_whole(files, path, key, kListMagic, file_bytes - kLeast, as_bytes(kListMagic), salt);
  if (!text) return text.error();
  auto list = parse_list(*text);
  if (!list) return make_error_code(StoreError::damaged);
  return *std::move(list);
}

}  // namespace longhaul::cache
