// SPDX-License-Identifier: Apache-2.0
// Derives connection ids, secrets, keys and their successors from the secret that both ends of a TLS
// connection can export (PROTOCOL.md, section 11).
#pragma once
#include <array>
#include <compare>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

#include "codecs/byte_writer.h"
#include "crypto/secret.h"
#include "proxy/link/frames.h"

namespace longhaul::link::udp {

// Identifies the receiver's state in every packet of one direction. It is derived from the exporter, so it
// cannot be chosen, and off-path attackers cannot guess it.
struct ConnectionId {
  static constexpr std::size_t kSize = 8;
  std::array<std::byte, kSize> bytes{};
  auto operator<=>(const ConnectionId&) const = default;
};

enum class Cipher : std::uint8_t { aes_128_gcm = 1, chacha20_poly1305 = 2 };  // values: bits of HELLO
constexpr std::size_t key_size(Cipher cipher) { return cipher == Cipher::aes_128_gcm ? 16 : 32; }

using TrafficSecret = Secret<32>;

struct DirectionKeys {
  ConnectionId id;
  TrafficSecret secret;
};

struct CarrierKeys {
  DirectionKeys dialler_to_acceptor, acceptor_to_dialler;

  // `side`: the side that dialled the connection from which the keys were exported; not the session's side.
  const DirectionKeys& sent_by(Side side) const {
    return side == Side::dialler ? dialler_to_acceptor : acceptor_to_dialler;
  }
  const DirectionKeys& received_by(Side side) const {
    return side == Side::dialler ? acceptor_to_dialler : dialler_to_acceptor;
  }
};

// The label and context for TlsEngine::export_keying_material.
inline constexpr std::string_view kExporterLabel = "EXPORTER-longhaul-udp";
inline constexpr std::size_t kExportedBytes = 2 * (ConnectionId::kSize + sizeof(TrafficSecret));
Buffer exporter_context(const Token& session, std::uint64_t epoch);
// The same for one of several paths: another label, so that no path shares keys with a link without paths.
inline constexpr std::string_view kPathExporterLabel = "EXPORTER-longhaul-udp-path";
Buffer exporter_context(const Token& session, std::uint64_t epoch, std::uint64_t path);

// `exported` has kExportedBytes.
CarrierKeys keys_from_exporter(Bytes exported);

// HKDF-Expand-Label of RFC 8446, section 7.1, with SHA-256, an empty context and "tls13 " before the label.
void hkdf_expand_label(const TrafficSecret& secret, std::string_view label, MutableBytes out);

struct PacketKey {
  Secret<32> key;  // the first key_size(cipher) bytes
  std::array<std::byte, 12> iv{};
};
PacketKey packet_key(const TrafficSecret& secret, Cipher cipher);
TrafficSecret next_secret(const TrafficSecret& secret);

// The ciphers in HELLO. A side that is faster without AES offers only ChaCha20, so AES is used if both sides
// prefer it.
std::uint8_t ciphers_to_offer(Cipher preferred);
// The acceptor's choice from the dialler's offer. Returns nullopt if there is no common cipher; then UDP is
// not used.
std::optional<Cipher> cipher_to_answer(std::uint8_t offered, Cipher preferred);
// The one bit in the acceptor's HELLO. Returns nullopt if it has none, several, or one that was not offered.
std::optional<Cipher> cipher_answered(std::uint8_t answered, std::uint8_t offered);

}  // namespace longhaul::link::udp

template <>
struct std::hash<longhaul::link::udp::ConnectionId> {
  // Only ids derived by this program are put into a table, so a remote host cannot cause collisions.
  std::size_t operator()(const longhaul::link::udp::ConnectionId& id) const noexcept {
    std::size_t value;
    static_assert(sizeof value <= sizeof id.bytes);
    std::memcpy(&value, id.bytes.data(), sizeof value);
    return value;
  }
};
