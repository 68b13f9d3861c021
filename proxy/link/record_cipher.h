// SPDX-License-Identifier: Apache-2.0
// One AEAD key at work on TLS records, whose bytes may come in pieces, and UDP packets: by OpenSSL, or, for
// AES-128-GCM and ChaCha20-Poly1305 on processors with VAES, by intel-ipsec-mb, which is twice as fast as
// OpenSSL 3.0 on records and four times on packets. Nonces and record heads are the caller's.
#pragma once
#include <openssl/evp.h>

#include <memory>
#include <span>

#include "codecs/bytes.h"

namespace longhaul::link {

inline constexpr std::size_t kRecordTagBytes = 16;

// For each text: start, add as often as there are pieces, and one of the two ends. A call that fails makes
// the text worthless, and the next start begins anew.
class RecordCipher {
 public:
  enum class Use : std::uint8_t { seal, open };
  using Nonce = std::span<const unsigned char, 12>;

  virtual ~RecordCipher() = default;
  virtual bool start(Nonce nonce, std::span<const unsigned char> associated) = 0;
  virtual bool add(Bytes text, unsigned char* out) = 0;
  virtual bool seal(unsigned char* tag) = 0;                      // writes kRecordTagBytes
  [[nodiscard]] virtual bool open(const unsigned char* tag) = 0;  // false: forged

  // The same at once, for a text that lies in one piece and stays where it is.
  virtual bool seal_whole(Nonce nonce, std::span<const unsigned char> associated, MutableBytes text,
                          unsigned char* tag);
  [[nodiscard]] virtual bool open_whole(Nonce nonce, std::span<const unsigned char> associated,
                                        MutableBytes text, const unsigned char* tag);
};

// The fastest there is; throws std::bad_alloc when OpenSSL has no memory.
std::unique_ptr<RecordCipher> make_record_cipher(int nid, std::span<const unsigned char> key,
                                                 RecordCipher::Use use);
// Each by itself: none where the library, the processor or the cipher does not fit.
std::unique_ptr<RecordCipher> make_openssl_cipher(int nid, std::span<const unsigned char> key,
                                                  RecordCipher::Use use);
std::unique_ptr<RecordCipher> make_vector_cipher(int nid, std::span<const unsigned char> key,
                                                 RecordCipher::Use use);

}  // namespace longhaul::link
