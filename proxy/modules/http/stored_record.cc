// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/stored_record.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "codecs/byte_reader.h"

namespace longhaul::http {
namespace {

constexpr std::uint8_t kRecordVersion = 1;
constexpr std::uint8_t kForAll = 1, kHasValidator = 2;  // of a tag
constexpr std::size_t kMostTag = 256, kMostRecordFields = 1024, kDigestBytes = 16;
constexpr Seconds kMostRecordSeconds = 1ll << 40;

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest digest_of(const std::vector<std::pair<std::string, std::string>>& vary) {
  Buffer text;
  ByteWriter writer(text);
  for (const auto& [name, value] : vary) {
    writer.text(name);
    writer.text(value);
  }
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

std::optional<std::vector<std::string>> names_in(ByteReader& reader) {
  const auto count = reader.u8();
  if (!count || *count > kMostVarying) return std::nullopt;
  std::vector<std::string> names;
  for (unsigned i = 0; i < *count; ++i) {
    const auto name = reader.text();
    if (!name) return std::nullopt;
    names.emplace_back(*name);
  }
  return names;
}

void write_seconds(ByteWriter& writer, Seconds value) { writer.fixed64(static_cast<std::uint64_t>(value)); }

std::optional<Seconds> read_seconds(ByteReader& reader) {
  const auto value = reader.fixed64();
  if (!value) return std::nullopt;
  const auto seconds = static_cast<Seconds>(*value);
  return seconds < -kMostRecordSeconds || seconds > kMostRecordSeconds ? std::nullopt : std::optional(seconds);
}

bool read_text(ByteReader& reader, std::string& into) {
  const auto text = reader.text();
  if (text) into = *text;
  return text.has_value();
}

// How long ago it was received, by both clocks.
void set_age(Stored& stored, const Clocks& then, const Clocks& clocks, bool is_sure) {
  constexpr Seconds kRounding = 2;
  const Seconds by_wall = clocks.wall - then.wall;
  const Seconds by_loop = std::chrono::duration_cast<std::chrono::seconds>(clocks.now - then.now).count();
  if (is_sure && by_loop >= 0 && by_wall >= -kRounding) {
    // The loop's clock stops while the system is suspended.
    stored.received = then.now;
    stored.age_then += std::max<Seconds>(0, by_wall - by_loop - kRounding);
    return;
  }
  stored.received = clocks.now;
  stored.age_then += std::max<Seconds>(0, by_wall);
  stored.lifetime = 0;
}

}  // namespace

std::optional<Buffer> tag_of(const Stored& stored) {
  Buffer tag;
  ByteWriter writer(tag);
  writer.u8(static_cast<std::uint8_t>((stored.for_all ? kForAll : 0) | (stored.can_be_asked_about() ? kHasValidator : 0)));
  writer.u8(static_cast<std::uint8_t>(stored.vary.size()));
  for (const auto& [name, value] : stored.vary) {
    if (name == "cookie" || name == "authorization") return std::nullopt;
    writer.text(name);
  }
  const Digest digest = digest_of(stored.vary);
  writer.bytes(std::as_bytes(std::span(digest)).first(kDigestBytes));
  return tag.size() > kMostTag ? std::nullopt : std::optional(std::move(tag));
}

bool tag_fits(Bytes tag, const RequestHead& request, bool must_be_asked) {
  ByteReader reader(tag);
  const auto flags = reader.u8();
  const auto names = flags ? names_in(reader) : std::nullopt;
  if (!names || reader.remaining() != kDigestBytes) return false;
  if (must_be_asked && (*flags & kHasValidator) == 0) return false;
  if (request.fields.has("authorization") && (*flags & kForAll) == 0) return false;
  const Digest digest = digest_of(values_of(request, *names));
  return std::ranges::equal(std::as_bytes(std::span(digest)).first(kDigestBytes), reader.rest());
}

Buffer write_stored(const Stored& stored, const Clocks& clocks) {
  Buffer record;
  ByteWriter writer(record);
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(clocks.now - stored.received).count();
  writer.u8(kRecordVersion);
  writer.fixed16(static_cast<std::uint16_t>(stored.status));
  writer.u8(static_cast<std::uint8_t>((stored.validate_always ? 1 : 0) | (stored.for_all ? 2 : 0)));
  writer.fixed64(static_cast<std::uint64_t>(stored.received.time_since_epoch().count()));
  write_seconds(writer, clocks.wall - since);
  write_seconds(writer, stored.age_then);
  write_seconds(writer, stored.lifetime);
  for (const std::string* text : {&stored.phrase, &stored.etag, &stored.last_modified}) writer.text(*text);
  writer.varint(stored.vary.size());
  for (const auto& [name, value] : stored.vary) writer.text(name);
  writer.varint(stored.fields.all().size());
  for (const Field& field : stored.fields.all()) {
    writer.text(field.name);
    writer.text(field.value);
  }
  writer.fixed64(stored.content_bytes);
  return record;
}

std::optional<Stored> read_stored(const Slice& bytes, const RequestHead& request, bool is_sure, const Clocks& clocks) {
  ByteReader reader(bytes.bytes());
  const auto version = reader.u8();
  const auto status = reader.fixed16();
  const auto flags = reader.u8();
  const auto received = reader.fixed64();
  const auto wall = read_seconds(reader), age = read_seconds(reader), lifetime = read_seconds(reader);
  if (version != kRecordVersion || !status || *status < 200 || *status > 999 || !flags || !received || *received >= 1ull << 62 || !wall || !age ||
      *age < 0 || !lifetime || *lifetime < 0)
    return std::nullopt;
  Stored stored{.status = *status, .age_then = *age, .lifetime = *lifetime,
                .validate_always = (*flags & 1) != 0, .for_all = (*flags & 2) != 0};
  if (!read_text(reader, stored.phrase) || !read_text(reader, stored.etag) || !read_text(reader, stored.last_modified))
    return std::nullopt;
  const auto varying = reader.varint();
  if (!varying || *varying > kMostVarying) return std::nullopt;
  std::vector<std::string> names(*varying);
  for (std::string& name : names)
    if (!read_text(reader, name)) return std::nullopt;
  const auto fields = reader.varint();
  if (!fields || *fields > kMostRecordFields) return std::nullopt;
  for (std::uint64_t i = 0; i < *fields; ++i) {
    Field field;
    if (!read_text(reader, field.name) || !read_text(reader, field.value)) return std::nullopt;
    stored.fields.add(std::move(field));
  }
  const auto content = reader.fixed64();
  if (!content || *content != reader.remaining()) return std::nullopt;
  stored.content_bytes = *content;
  if (*content > 0) stored.content.push_back(bytes.sub(bytes.size() - *content, *content));
  stored.vary = values_of(request, names);
  const link::TimePoint then{link::TimePoint::duration(static_cast<link::TimePoint::rep>(*received))};
  set_age(stored, {.now = then, .wall = *wall}, clocks, is_sure);
  return stored;
}

}  // namespace longhaul::http
