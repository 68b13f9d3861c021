// SPDX-License-Identifier: Apache-2.0
#include "cache/object_file.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

#include "cache/error.h"
#include "cache/sealed_file.h"
#include "codecs/byte_reader.h"

namespace longhaul::cache {
namespace {

constexpr std::string_view kObjectMagic("LHOBJ\0\0\1", 8), kListMagic("LHOBL\0\0\1", 8);
constexpr std::size_t kLabelBytes = sizeof(ObjectName) + 4 + 2 + kMostTagBytes;
constexpr std::size_t kObjectHeaderBytes = sealed_header_bytes(kLabelBytes);
static_assert(kObjectHeaderBytes == 350);
constexpr std::size_t kListedBytes = 8 + sizeof(Salt);

constexpr std::uint32_t kFirstObjectPiece = 1;

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
Buffer bound_to_number(std::uint64_t number) {
  Buffer bytes;
  ByteWriter writer(bytes);
  writer.bytes(as_bytes(kObjectMagic));
  writer.fixed64(number);
  return bytes;
}

Buffer label_text(const ObjectLabel& label) {
  Buffer text;
  ByteWriter writer(text);
  writer.bytes(label.name);
  write_u32(writer, label.bytes);
  writer.fixed16(static_cast<std::uint16_t>(label.tag.size()));
  writer.bytes(label.tag);
  const std::size_t filled = text.size();
  text.resize(kLabelBytes);
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(filled), text.end(), std::byte{0});
  return text;
}

// The content of an object's file to be written.
class ObjectContent {
 public:
  ObjectContent(const DictionaryKey& key, const Salt& salt, std::uint64_t number, const ObjectLabel& label,
                std::span<const Slice> parts)
      : label_(label),
        bound_(bound_to_number(number)),
        file_(key, kObjectMagic, salt),
        content_(file_, kFirstObjectPiece, bound_, parts) {}

  Result<Bytes> next() {
    out_.clear();
    if (!std::exchange(has_header_, true)) return answer(file_.header(label_text(label_), bound_, out_));
    if (content_.is_done()) return Bytes();
    return answer(content_.next(out_, [](Bytes) {}));
  }

 private:
  Result<Bytes> answer(bool made) const {
    if (!made) return make_error_code(StoreError::no_cipher);
    return Bytes(out_);
  }

  const ObjectLabel& label_;
  Buffer bound_;
  SealedFile file_;
  SealedFile::Content content_;
  bool has_header_ = false;
  Buffer out_;
};

}  // namespace

ObjectName object_name(std::string_view name) {
  ObjectName digest;
  SHA256(reinterpret_cast<const unsigned char*>(name.data()), name.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::uint64_t object_file_bytes(std::uint32_t bytes) {
  return kObjectHeaderBytes + sealed_content_bytes(bytes);
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
  if (file_bytes < kObjectHeaderBytes) return make_error_code(StoreError::truncated);
  std::array<std::byte, kLabelBytes> text;
  if (auto opened = open_header(files, path, key, kObjectMagic, bound_to_number(number), text, found.salt);
      !opened)
    return opened.error();
  auto label = parse_label(text);
  if (!label) return make_error_code(StoreError::damaged);
  if (object_file_bytes(label->bytes) != file_bytes) return make_error_code(StoreError::truncated);
  found.label = *std::move(label);
  return found;
}

Result<Slice> read_object(Files& files, const std::string& path, const DictionaryKey& key,
                          std::uint64_t number, const SaltedLabel& expected) {
  std::array<std::byte, kMagicBytes> magic;
  Salt salt;
  std::array<std::byte, kObjectHeaderBytes - kSaltedBytes> label;
  OpenedPieces pieces(expected.label.bytes);
  std::vector<MutableBytes> into{magic, salt, label};
  pieces.add_to(into);
  if (auto read = files.read(path, 0, into); !read) return read.error();
  // Another salt: another file, which has replaced this one.
  if (as_text(magic) != kObjectMagic || salt != expected.salt) return make_error_code(StoreError::damaged);
  const auto cipher = key.cipher(kObjectMagic, salt, Aead::Use::open);
  if (!pieces.open(*cipher, kFirstObjectPiece, bound_to_number(number)))
    return make_error_code(StoreError::damaged);
  return pieces.take();
}

Result<void> write_list(Files& files, const std::string& path, const DictionaryKey& key,
                        const ObjectList& list) {
  if (list.boot.size() > kMostBootBytes || list.objects.size() > kMostListed)
    return make_error_code(StoreError::damaged);
  const auto salt = draw_salt();
  if (!salt) return salt.error();
  Buffer text, out;
  ByteWriter writer(text);
  writer.u8(static_cast<std::uint8_t>(list.boot.size()));
  writer.bytes(as_bytes(list.boot));
  write_u32(writer, static_cast<std::uint32_t>(list.objects.size()));
  for (const ListedObject& object : list.objects) {
    writer.fixed64(object.number);
    writer.bytes(object.salt);
  }
  if (!SealedFile(key, kListMagic, *salt).header(text, as_bytes(kListMagic), out))
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
  constexpr std::size_t kLeast = sealed_header_bytes(0),
                        kMost = kLeast + 5 + kMostBootBytes + kMostListed * kListedBytes;
  if (file_bytes < kLeast || file_bytes > kMost) return make_error_code(StoreError::truncated);
  Salt salt;
  Buffer text(file_bytes - kLeast);
  if (auto opened = open_header(files, path, key, kListMagic, as_bytes(kListMagic), text, salt); !opened)
    return opened.error();
  auto list = parse_list(text);
  if (!list) return make_error_code(StoreError::damaged);
  return *std::move(list);
}

}  // namespace longhaul::cache
