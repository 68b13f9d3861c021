// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_cipher.h"

#include <endian.h>
#include <openssl/err.h>
#include <openssl/objects.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace longhaul::link::udp {
namespace {

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

int nid_of(Cipher cipher) { return cipher == Cipher::aes_128_gcm ? NID_aes_128_gcm : NID_chacha20_poly1305; }

}  // namespace

PacketCipher::PacketCipher(const PacketKey& key, Cipher cipher, Use use)
    : cipher_(make_aead(nid_of(cipher), {raw(key.key.bytes.data()), key_size(cipher)}, use)), iv_(key.iv) {}

// The nonce is that of RFC 9001, section 5.3.
std::array<unsigned char, 12> PacketCipher::nonce(PacketNumber number) const {
  std::array<unsigned char, 12> nonce;
  std::memcpy(nonce.data(), iv_.data(), nonce.size());
  std::uint64_t last;
  std::memcpy(&last, iv_.data() + 4, sizeof last);
  last ^= htobe64(number.number());
  std::memcpy(nonce.data() + 4, &last, sizeof last);
  return nonce;
}

void PacketCipher::seal(PacketNumber number, Bytes associated, MutableBytes text,
                        std::span<std::byte, kPacketTagBytes> tag) {
  // No input can make it fail; after a failure the output might be plain text.
  if (!cipher_->seal_whole(nonce(number), {raw(associated.data()), associated.size()}, text, raw(tag.data())))
    throw std::runtime_error("OpenSSL cannot seal a packet");
}

bool PacketCipher::open(PacketNumber number, Bytes associated, MutableBytes text,
                        std::span<const std::byte, kPacketTagBytes> tag) {
  bool authentic =
      cipher_->open_whole(nonce(number), {raw(associated.data()), associated.size()}, text, raw(tag.data()));
  // Packets that are not authentic must not fill the thread's error queue, or be mistaken for a later error
  // of TLS.
  if (!authentic) ERR_clear_error();
  return authentic;
}

}  // namespace longhaul::link::udp
