// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/keytab.h"

#include <algorithm>
#include <cstring>

#include "codecs/byte_reader.h"
#include "proxy/modules/smb/seal/names.h"

namespace longhaul::smb::seal {
namespace {

constexpr std::uint16_t kFormat1 = 0x0501, kFormat2 = 0x0502;
constexpr std::size_t kMostComponents = 16;

std::optional<std::uint32_t> big32(ByteReader& reader) {
  ByteReader attempt = reader;
  const auto high = attempt.fixed16(), low = attempt.fixed16();
  if (!high || !low) return std::nullopt;
  reader = attempt;
  return static_cast<std::uint32_t>(*high) << 16 | *low;
}

std::optional<std::string_view> counted_text(ByteReader& reader) {
  const auto size = reader.fixed16();
  const auto text = size ? reader.bytes(*size) : std::nullopt;
  return text ? std::optional(as_text(*text)) : std::nullopt;
}

struct Entry {
  ServiceKey key;
  std::uint16_t etype = 0;
};

std::optional<Entry> parse_entry(Bytes content) {
  ByteReader reader(content);
  const auto components = reader.fixed16();
  const auto realm = counted_text(reader);
  if (!components || *components > kMostComponents || !realm) return std::nullopt;
  Entry entry;
  std::string& principal = entry.key.principal;
  for (unsigned i = 0; i < *components; ++i) {
    const auto part = counted_text(reader);
    if (!part) return std::nullopt;
    if (i) principal += '/';
    principal += *part;
  }
  (principal += '@') += *realm;
  if (!reader.bytes(8)) return std::nullopt;  // type of the name, time
  const auto short_kvno = reader.u8();
  const auto etype = reader.fixed16();
  const auto size = reader.fixed16();
  const auto value = size ? reader.bytes(*size) : std::nullopt;
  if (!short_kvno || !etype || !value) return std::nullopt;
  const auto kvno = big32(reader);
  entry.etype = *etype;
  entry.key.kvno = kvno && *kvno ? *kvno : *short_kvno;
  entry.key.type = static_cast<EncryptionType>(*etype);
  entry.key.key = SecretBytes(value->size());
  if (!value->empty()) std::memcpy(entry.key.key.data(), value->data(), value->size());
  return entry;
}

}  // namespace

config::TextResult<Keytab> parse_keytab(Bytes content) {
  ByteReader reader(content);
  const auto format = reader.fixed16();
  if (format == kFormat1)
    return config::TextError{"is a keytab of format version 1, which is no longer in use; export it again"};
  if (format != kFormat2) return config::TextError{"is not a keytab"};
  Keytab keytab;
  while (reader.remaining() > 0) {
    const auto size = big32(reader);
    if (!size) return config::TextError{"is a truncated keytab"};
    if (*size == 0) break;  // the rest is unused
    const bool hole = *size & 0x8000'0000u;
    const auto bytes = reader.bytes(hole ? std::uint64_t{~*size} + 1 : *size);
    if (!bytes) return config::TextError{"is a truncated keytab"};
    if (hole) continue;
    auto entry = parse_entry(*bytes);
    if (!entry) return config::TextError{"is a keytab with a malformed entry"};
    if (!is_known(entry->key.type) || entry->key.key.size() != key_bytes(entry->key.type)) {
      std::string name =
          printable_name(entry->key.principal) + " (etype " + std::to_string(entry->etype) + ")";
      if (std::ranges::find(keytab.skipped, name) == keytab.skipped.end() && keytab.skipped.size() < 16)
        keytab.skipped.push_back(std::move(name));
      continue;
    }
    if (keytab.keys.size() == ServerKeys::kMostKeys)
      return config::TextError{"has more than " + std::to_string(ServerKeys::kMostKeys) +
                               " keys; export only those of the file server"};
    keytab.keys.push_back(std::move(entry->key));
  }
  return keytab;
}

}  // namespace longhaul::smb::seal
