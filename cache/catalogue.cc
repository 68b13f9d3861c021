// SPDX-License-Identifier: Apache-2.0
#include "cache/catalogue.h"

#include <xxhash.h>

namespace longhaul::cache {

Buffer encode_record(const Record& record) {
  Buffer value;
  ByteWriter writer(value);
  writer.fixed64(record.file_bytes);
  reduction::write_name(record.name, writer);
  writer.fixed16(static_cast<std::uint16_t>(record.hooks.size() >> 16));
  writer.fixed16(static_cast<std::uint16_t>(record.hooks.size() & 0xffff));
  write_hooks(record.hooks, writer);
  writer.fixed64(XXH3_64bits_withSeed(value.data(), value.size(), record.number));
  return value;
}

std::optional<Record> decode_record(std::uint64_t number, Bytes value) {
  ByteReader reader(value);
  Record record{.number = number};
  auto file_bytes = reader.fixed64();
  auto name = reduction::read_name(reader);
  auto high = reader.fixed16(), low = reader.fixed16();
  if (!file_bytes || !name || !high || !low) return std::nullopt;
  record.file_bytes = *file_bytes;
  record.name = *name;
  std::size_t hooks = std::size_t{*high} << 16 | *low;
  if (!read_hooks(reader, hooks, name->length, record.hooks)) return std::nullopt;
  std::size_t covered = value.size() - reader.remaining();
  auto checksum = reader.fixed64();
  if (!checksum || reader.remaining() != 0 ||
      *checksum != XXH3_64bits_withSeed(value.data(), covered, number) ||
      record.file_bytes != segment_file_bytes(name->length, hooks))
    return std::nullopt;
  return record;
}

}  // namespace longhaul::cache
