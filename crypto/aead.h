// SPDX-License-Identifier: Apache-2.0
// One AEAD key (RFC 5116) for texts in one or several pieces, implemented by OpenSSL or, on processors with
// VAES, by intel-ipsec-mb, which is two to four times as fast as OpenSSL 3.0. The caller chooses the nonces
// and must never use one twice with a key.
#pragma once
#include <openssl/evp.h>

#include <memory>
#include <span>

#include "codecs/bytes.h"

namespace longhaul {

inline constexpr std::size_t kAeadTagBytes = 16;

// For each text: call start, then add once per piece, then seal or open. If a call fails, discard the text;
// the next start begins another.
class Aead {
 public:
  enum class Use : std::uint8_t { seal, open };
  using Nonce = std::span<const unsigned char, 12>;

  virtual ~Aead() = default;
  virtual bool start(Nonce nonce, std::span<const unsigned char> associated) = 0;
  virtual bool add(Bytes text, unsigned char* out) = 0;
  virtual bool seal(unsigned char* tag) = 0;                      // writes kAeadTagBytes
  [[nodiscard]] virtual bool open(const unsigned char* tag) = 0;  // false if forged

  // The same in one call, for a contiguous text, in place.
  virtual bool seal_whole(Nonce nonce, std::span<const unsigned char> associated, MutableBytes text,
                          unsigned char* tag);
  [[nodiscard]] virtual bool open_whole(Nonce nonce, std::span<const unsigned char> associated,
                                        MutableBytes text, const unsigned char* tag);
};

// The fastest implementation of `nid` (NID_aes_128_gcm, NID_aes_256_gcm, NID_chacha20_poly1305), for use only
// by the calling thread. Throws std::bad_alloc if OpenSSL has no memory.
std::unique_ptr<Aead> make_aead(int nid, std::span<const unsigned char> key, Aead::Use use);
// A specific implementation; null if the library, the processor or the cipher does not support it.
std::unique_ptr<Aead> make_openssl_aead(int nid, std::span<const unsigned char> key, Aead::Use use);
std::unique_ptr<Aead> make_vector_aead(int nid, std::span<const unsigned char> key, Aead::Use use);

}  // namespace longhaul
