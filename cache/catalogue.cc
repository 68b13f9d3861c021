// SPDX-License-Identifier: Apache-2.0
#include "cache/catalogue.h"

#include <cstring>

namespace longhaul::cache {
namespace {

constexpr std::string_view kRecordMagic("LHREC\0\0\2", 8);
constexpr std::size_t kAroundRecord = sizeof(Salt) + kAeadTagBytes;

std::array<unsigned char, 8> number_bytes(std::uint64_t number) {
  std::array<unsigned char, 8> bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[7 - i] = static_cast<unsigned char>(number >> 8 * i & 0xff);
  return bytes;
}

unsigned char* raw_bytes(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

std::optional<Record> read_record(std::uint64_t number, Bytes plain) {
  ByteReader reader(plain);
  Record record{.number = number};
  auto file_bytes = reader.fixed64();
  auto name = reduction::read_name(reader);
  auto high = reader.fixed16(), low = reader.fixed16();
  if (!file_bytes || !name || !high || !low) return std::nullopt;
  record.file_bytes = *file_bytes;
  record.name = *name;
  std::size_t hooks = std::size_t{*high} << 16 | *low;
  if (!read_hooks(reader, hooks, name->length, record.hooks) || reader.remaining() != 0 ||
      record.file_bytes != segment_file_bytes(name->length, hooks))
    return std::nullopt;
  return record;
}

}  // namespace

std::optional<Buffer> encode_record(const DictionaryKey& key, const Salt& salt, const Record& record) {
  Buffer value;
  ByteWriter writer(value);
  writer.bytes(salt);
  value.resize(kAroundRecord);
  writer.fixed64(record.file_bytes);
  reduction::write_name(record.name, writer);
  writer.fixed16(static_cast<std::uint16_t>(record.hooks.size() >> 16));
  writer.fixed16(static_cast<std::uint16_t>(record.hooks.size() & 0xffff));
  write_hooks(record.hooks, writer);
  if (!key.cipher(kRecordMagic, salt, Aead::Use::seal)
           ->seal_whole(part_nonce(0), number_bytes(record.number),
                        MutableBytes(value).subspan(kAroundRecord), raw_bytes(value.data() + sizeof(Salt))))
    return std::nullopt;
  return value;
}

std::optional<Record> decode_record(const DictionaryKey& key, std::uint64_t number, Bytes value) {
  if (value.size() < kAroundRecord) return std::nullopt;
  Salt salt;
  std::memcpy(salt.data(), value.data(), salt.size());
  Buffer text;
  append(text, value.subspan(sizeof(Salt)));
  if (!key.cipher(kRecordMagic, salt, Aead::Use::open)
           ->open_whole(part_nonce(0), number_bytes(number), MutableBytes(text).subspan(kAeadTagBytes),
                        raw_bytes(text.data())))
    return std::nullopt;
  return read_record(number, Bytes(text).subspan(kAeadTagBytes));
}

}  // namespace longhaul::cache
