// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_keys.h"

#include <algorithm>
#include <cassert>

#include "crypto/hkdf.h"

namespace longhaul::link::udp {
namespace {

constexpr std::string_view kKeyLabel = "longhaul key";
constexpr std::string_view kIvLabel = "longhaul iv";
constexpr std::string_view kUpdateLabel = "longhaul ku";

template <std::size_t Size>
void take(Bytes& from, std::array<std::byte, Size>& to) {
  std::copy_n(from.begin(), Size, to.begin());
  from = from.subspan(Size);
}

}  // namespace

Buffer exporter_context(const Token& session, std::uint64_t epoch) {
  Buffer context;
  ByteWriter writer(context);
  writer.bytes(session);
  writer.fixed64(epoch);
  return context;
}

Buffer exporter_context(const Token& session, std::uint64_t epoch, std::uint64_t path) {
  Buffer context = exporter_context(session, epoch);
  ByteWriter(context).fixed64(path);
  return context;
}

CarrierKeys keys_from_exporter(Bytes exported) {
  assert(exported.size() == kExportedBytes);
  CarrierKeys keys;
  for (DirectionKeys* direction : {&keys.dialler_to_acceptor, &keys.acceptor_to_dialler}) {
    take(exported, direction->id.bytes);
    take(exported, direction->secret.bytes);
  }
  return keys;
}

void hkdf_expand_label(const TrafficSecret& secret, std::string_view label, MutableBytes out) {
  Buffer info;  // struct HkdfLabel
  ByteWriter writer(info);
  writer.fixed16(static_cast<std::uint16_t>(out.size()));
  writer.u8(static_cast<std::uint8_t>(6 + label.size()));
  writer.bytes(as_bytes("tls13 "));
  writer.bytes(as_bytes(label));
  writer.u8(0);
  hkdf_expand(secret.bytes, info, out);
}

PacketKey packet_key(const TrafficSecret& secret, Cipher cipher) {
  PacketKey made;
  hkdf_expand_label(secret, kKeyLabel, MutableBytes(made.key.bytes).first(key_size(cipher)));
  hkdf_expand_label(secret, kIvLabel, made.iv);
  return made;
}

TrafficSecret next_secret(const TrafficSecret& secret) {
  TrafficSecret next;
  hkdf_expand_label(secret, kUpdateLabel, next.bytes);
  return next;
}

std::uint8_t ciphers_to_offer(Cipher preferred) {
  auto chacha = static_cast<std::uint8_t>(Cipher::chacha20_poly1305);
  auto aes = static_cast<std::uint8_t>(Cipher::aes_128_gcm);
  return preferred == Cipher::aes_128_gcm ? aes | chacha : chacha;
}

std::optional<Cipher> cipher_to_answer(std::uint8_t offered, Cipher preferred) {
  Cipher other = preferred == Cipher::aes_128_gcm ? Cipher::chacha20_poly1305 : Cipher::aes_128_gcm;
  for (Cipher cipher : {preferred, other})
    if (offered & static_cast<std::uint8_t>(cipher)) return cipher;
  return std::nullopt;
}

std::optional<Cipher> cipher_answered(std::uint8_t answered, std::uint8_t offered) {
  for (Cipher cipher : {Cipher::aes_128_gcm, Cipher::chacha20_poly1305})
    if (answered == static_cast<std::uint8_t>(cipher) && (offered & answered)) return cipher;
  return std::nullopt;
}

}  // namespace longhaul::link::udp
