// SPDX-License-Identifier: Apache-2.0
// One AEAD key at work on packets, in place: AES-128-GCM or ChaCha20-Poly1305 by OpenSSL, the key set up
// once. Leaves to packet.h that no number is used twice.
#pragma once
#include <openssl/evp.h>

#include <memory>

#include "codecs/bytes.h"
#include "proxy/link/udp/packet_keys.h"

namespace longhaul::link::udp {

inline constexpr std::size_t kPacketTagBytes = 16;
using PacketNumber = std::uint64_t;

class PacketCipher {
 public:
  enum class Direction { seal, open };
  PacketCipher(const PacketKey& key, Cipher cipher, Direction direction);

  // Encrypts `text` where it lies and writes the tag.
  void seal(PacketNumber number, Bytes associated, MutableBytes text,
            std::span<std::byte, kPacketTagBytes> tag);
  // Decrypts `text` where it lies. False: not sealed with this key, number and header; `text` is garbage
  // then.
  [[nodiscard]] bool open(PacketNumber number, Bytes associated, MutableBytes text,
                          std::span<const std::byte, kPacketTagBytes> tag);

 private:
  std::array<unsigned char, 12> nonce(PacketNumber number) const;

  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
  std::array<std::byte, 12> iv_;
};

// The faster of the two on this machine, measured for about a millisecond at the first call.
Cipher choose_cipher();

}  // namespace longhaul::link::udp
