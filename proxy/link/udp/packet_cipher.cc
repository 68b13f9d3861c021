// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_cipher.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>

#include <chrono>
#include <stdexcept>
#include <vector>

namespace longhaul::link::udp {
namespace {

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

// OpenSSL counts in int; a datagram is never near that.
int count(std::size_t size) { return static_cast<int>(size); }

// Fetched once: a lookup by name for every key would cost more than setting the key up.
const EVP_CIPHER* fetched(Cipher cipher) {
  static const EVP_CIPHER* aes = EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr);
  static const EVP_CIPHER* chacha = EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr);
  return cipher == Cipher::aes_128_gcm ? aes : chacha;
}

}  // namespace

PacketCipher::PacketCipher(const PacketKey& key, Cipher cipher, Direction direction)
    : context_(EVP_CIPHER_CTX_new()), iv_(key.iv) {
  if (!context_ || EVP_CipherInit_ex2(context_.get(), fetched(cipher), raw(key.key.bytes.data()), nullptr,
                                      direction == Direction::seal ? 1 : 0, nullptr) != 1)
    throw std::runtime_error("OpenSSL cannot set up a packet cipher");
}

// RFC 9001, section 5.3.
std::array<unsigned char, 12> PacketCipher::nonce(PacketNumber number) const {
  std::array<unsigned char, 12> made;
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = std::to_integer<unsigned char>(iv_[i]);
  for (std::size_t i = 0; i < 8; ++i)
    made[11 - i] = static_cast<unsigned char>(made[11 - i] ^ (number >> 8 * i & 0xff));
  return made;
}

void PacketCipher::seal(PacketNumber number, Bytes associated, MutableBytes text,
                        std::span<std::byte, kPacketTagBytes> tag) {
  EVP_CIPHER_CTX* context = context_.get();
  auto iv = nonce(number);
  int written = 0;
  OSSL_PARAM get_tag[] = {
      OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag.data(), tag.size()),
      OSSL_PARAM_construct_end()};
  bool sealed =
      EVP_EncryptInit_ex2(context, nullptr, nullptr, iv.data(), nullptr) == 1 &&
      EVP_EncryptUpdate(context, nullptr, &written, raw(associated.data()), count(associated.size())) == 1 &&
      EVP_EncryptUpdate(context, raw(text.data()), &written, raw(text.data()), count(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context, raw(text.data()) + text.size(), &written) == 1 &&
      EVP_CIPHER_CTX_get_params(context, get_tag) == 1;
  // Nothing from outside can cause it; what would leave might be plain text.
  if (!sealed) throw std::runtime_error("OpenSSL cannot seal a packet");
}

bool PacketCipher::open(PacketNumber number, Bytes associated, MutableBytes text,
                        std::span<const std::byte, kPacketTagBytes> tag) {
  EVP_CIPHER_CTX* context = context_.get();
  auto iv = nonce(number);
  int written = 0;
  // OpenSSL takes a pointer to non-const for what it only reads.
  OSSL_PARAM set_tag[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG,
                                                            const_cast<std::byte*>(tag.data()), tag.size()),
                          OSSL_PARAM_construct_end()};
  bool authentic =
      EVP_DecryptInit_ex2(context, nullptr, nullptr, iv.data(), set_tag) == 1 &&
      EVP_DecryptUpdate(context, nullptr, &written, raw(associated.data()), count(associated.size())) == 1 &&
      EVP_DecryptUpdate(context, raw(text.data()), &written, raw(text.data()), count(text.size())) == 1 &&
      EVP_DecryptFinal_ex(context, raw(text.data()) + text.size(), &written) == 1;
  // A stranger's packets must not fill the thread's error queue, nor be mistaken for a later error of TLS.
  if (!authentic) ERR_clear_error();
  return authentic;
}

Cipher choose_cipher() {
  static const Cipher faster = [] {
    using Clock = std::chrono::steady_clock;
    // Rounds of both in turn, and the best of each: a thread that is interrupted judges neither.
    constexpr int kRounds = 8, kPackets = 32;
    constexpr Cipher kCiphers[] = {Cipher::aes_128_gcm, Cipher::chacha20_poly1305};
    std::array<std::byte, 13> header{};
    std::vector<std::byte> text(1400);
    std::array<std::byte, kPacketTagBytes> tag;
    Clock::duration best[] = {Clock::duration::max(), Clock::duration::max()};
    PacketCipher ciphers[] = {{PacketKey{}, kCiphers[0], PacketCipher::Direction::seal},
                              {PacketKey{}, kCiphers[1], PacketCipher::Direction::seal}};
    PacketNumber number = 0;
    for (int round = 0; round < kRounds; ++round)
      for (int i : {0, 1}) {
        auto start = Clock::now();
        for (int packet = 0; packet < kPackets; ++packet) ciphers[i].seal(++number, header, text, tag);
        best[i] = std::min(best[i], Clock::now() - start);
      }
    return kCiphers[best[1] < best[0] ? 1 : 0];
  }();
  return faster;
}

}  // namespace longhaul::link::udp
