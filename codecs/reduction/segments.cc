// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/segments.h"

#include <xxhash.h>

#include <cstring>
#include <memory>

namespace longhaul::reduction {

void write_name(const SegmentName& name, ByteWriter& writer) {
  writer.bytes(name.writer);
  writer.bytes(name.reader);
  writer.fixed64(name.epoch);
  writer.fixed64(name.first);
  writer.fixed16(static_cast<std::uint16_t>(name.length >> 16));
  writer.fixed16(static_cast<std::uint16_t>(name.length & 0xffff));
  writer.bytes(name.digest);
}

std::optional<SegmentName> read_name(ByteReader& reader) {
  if (reader.remaining() < kSegmentNameBytes) return std::nullopt;
  SegmentName name;
  for (SiteId* site : {&name.writer, &name.reader})
    std::memcpy(site->data(), reader.bytes(site->size())->data(), site->size());
  name.epoch = *reader.fixed64();
  name.first = *reader.fixed64();
  name.length = std::uint32_t{*reader.fixed16()} << 16;
  name.length |= *reader.fixed16();
  std::memcpy(name.digest.data(), reader.bytes(name.digest.size())->data(), name.digest.size());
  if (name.length == 0 || name.length > kMaxSegmentBytes) return std::nullopt;
  return name;
}

std::array<std::byte, 16> segment_digest(std::span<const Slice> parts) {
  std::unique_ptr<XXH3_state_t, decltype([](XXH3_state_t* state) { XXH3_freeState(state); })> state(
      XXH3_createState());
  XXH3_128bits_reset(state.get());
  for (const Slice& part : parts) XXH3_128bits_update(state.get(), part.bytes().data(), part.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state.get()));
  std::array<std::byte, 16> digest;
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

}  // namespace longhaul::reduction
