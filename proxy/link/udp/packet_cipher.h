// SPDX-License-Identifier: Apache-2.0
// One AEAD key for packets, used in place: the nonce and the cipher. crypto/aead.h has the algorithms;
// packet.h ensures that no number is used twice.
#pragma once
#include <memory>

#include "crypto/aead.h"
#include "proxy/link/udp/packet_keys.h"
#include "proxy/link/udp/packet_number.h"

namespace longhaul::link::udp {

inline constexpr std::size_t kPacketTagBytes = kAeadTagBytes;

class PacketCipher {
 public:
  using Use = Aead::Use;
  PacketCipher(const PacketKey& key, Cipher cipher, Use use);

  // Encrypts `text` in place and writes the tag.
  void seal(PacketNumber number, Bytes associated, MutableBytes text,
            std::span<std::byte, kPacketTagBytes> tag);
  // Decrypts `text` in place. Returns false if it was not encrypted with this key, number and header; then
  // `text` is undefined.
  [[nodiscard]] bool open(PacketNumber number, Bytes associated, MutableBytes text,
                          std::span<const std::byte, kPacketTagBytes> tag);

 private:
  std::array<unsigned char, 12> nonce(PacketNumber number) const;

  std::unique_ptr<Aead> cipher_;
  std::array<std::byte, 12> iv_;
};

}  // namespace longhaul::link::udp
