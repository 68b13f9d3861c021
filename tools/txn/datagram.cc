// SPDX-License-Identifier: Apache-2.0
// The wire format.
#include "tools/txn/datagram.h"

#include "codecs/byte_reader.h"

namespace longhaul::txn {
namespace {

constexpr std::uint8_t kMark = 0xE7;

}  // namespace

void encode(const Datagram& datagram, Buffer& out) {
  out.clear();
  ByteWriter writer{out};
  writer.u8(kMark);
  writer.u8(static_cast<std::uint8_t>(static_cast<unsigned>(datagram.kind) |
                                      static_cast<unsigned>(datagram.direction) << 2 |
                                      (datagram.asks ? 8u : 0u)));
  writer.fixed16(datagram.burst);
  writer.fixed16(datagram.index);
  writer.fixed64(datagram.key);
  writer.fixed64(std::uint64_t{datagram.connection} << 32 | datagram.message);
  writer.fixed64(std::uint64_t{datagram.window} << 32 | datagram.size);
  if (datagram.kind == Kind::data) writer.bytes(datagram.payload);
  for (const std::uint16_t index : datagram.missing) writer.fixed16(index);
}

std::optional<Datagram> parse_datagram(Bytes bytes) {
  if (bytes.size() < kDatagramHeader) return std::nullopt;
  ByteReader reader{bytes};
  if (*reader.u8() != kMark) return std::nullopt;
  const unsigned flags = *reader.u8();
  if (flags > 15 || flags % 4 == 0) return std::nullopt;
  Datagram datagram;
  datagram.kind = static_cast<Kind>(flags % 4);
  datagram.direction = static_cast<Direction>(flags >> 2 & 1);
  datagram.asks = flags & 8;
  datagram.burst = *reader.fixed16();
  datagram.index = *reader.fixed16();
  datagram.key = *reader.fixed64();
  const auto place = *reader.fixed64();
  datagram.connection = static_cast<std::uint32_t>(place >> 32);
  datagram.message = static_cast<std::uint32_t>(place);
  const auto part = *reader.fixed64();
  datagram.window = static_cast<std::uint32_t>(part >> 32);
  datagram.size = static_cast<std::uint32_t>(part);
  const Bytes rest = reader.rest();
  switch (datagram.kind) {
    case Kind::data:
      if (rest.empty()) return std::nullopt;
      datagram.payload = rest;
      return datagram;
    case Kind::acknowledgement:
      if (!rest.empty()) return std::nullopt;
      return datagram;
    case Kind::negative:
      if (rest.empty() || rest.size() % 2 || rest.size() / 2 > kMostDatagramsInWindow) return std::nullopt;
      while (reader.remaining()) {
        const std::uint16_t index = *reader.fixed16();
        if (!datagram.missing.empty() && index <= datagram.missing.back()) return std::nullopt;
        datagram.missing.push_back(index);
      }
      return datagram;
  }
  return std::nullopt;
}

}  // namespace longhaul::txn
