// SPDX-License-Identifier: Apache-2.0
// Records of TLS 1.2 with AEAD suites in one direction of a connection after its handshake (RFC 5246, section
// 6; RFC 5288; RFC 7905). libssl does the handshake. Suites with CBC or RC4, compression and renegotiation
// are not supported.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "codecs/byte_writer.h"
#include "crypto/aead.h"
#include "crypto/secret.h"
#include "crypto/tls_records.h"

namespace longhaul {

struct Tls12Suite {
  int nid;
  const EVP_MD* digest;  // of the PRF
  // By the number in ServerHello: ECDHE with AES-GCM or ChaCha20-Poly1305; nullopt for any other suite.
  static std::optional<Tls12Suite> of(std::uint16_t number);
  // For a supported suite: whether it is signed with an RSA key; otherwise with ECDSA.
  static bool is_with_rsa(std::uint16_t number) {
    return number == 0xC02F || number == 0xC030 || number == 0xCCA8;
  }
  std::size_t key_bytes() const { return nid == NID_aes_128_gcm ? 16 : 32; }
  // Bytes from the key block: the first part of each nonce (GCM), or the value that is combined with the
  // record's number.
  std::size_t iv_bytes() const { return nid == NID_chacha20_poly1305 ? 12 : 4; }
  std::size_t secret_bytes() const { return key_bytes() + iv_bytes(); }
};

// The secrets of each direction: its key followed by its IV.
struct Tls12Secrets {
  SecretBytes client, server;
};
// The key block (RFC 5246, section 6.3). Throws std::bad_alloc.
Tls12Secrets tls12_secrets(const Tls12Suite& suite, Bytes master, Bytes server_random, Bytes client_random);

// A key and the number of the next record.
class Tls12Key {
 public:
  using Use = Aead::Use;
  Tls12Key(const Tls12Suite& suite, Bytes secret, Use use, std::uint64_t number);
  Tls12Key(const Tls12Key&) = delete;
  Tls12Key& operator=(const Tls12Key&) = delete;

 protected:
  static constexpr std::size_t kExplicitBytes = 8;
  std::size_t explicit_bytes() const {
    return iv_bytes_ == 4 ? kExplicitBytes : 0;
  }  // of a record, in front of its text
  using Associated = std::array<unsigned char, 13>;
  Associated associated(std::uint8_t type, std::size_t size) const;
  // `written`: the record's explicit bytes, if it has any.
  std::array<unsigned char, 12> nonce(const unsigned char* written) const;
  std::array<unsigned char, kExplicitBytes> number_bytes() const;

  std::unique_ptr<Aead> cipher_;
  std::uint64_t number_;

 private:
  Secret<12> iv_;
  std::size_t iv_bytes_;
};

class Tls12Sealer : public Tls12Key {
 public:
  Tls12Sealer(const Tls12Suite& suite, Bytes secret, std::uint64_t number)
      : Tls12Key(suite, secret, Use::seal, number) {}
  // Appends as many records as needed. Returns false if OpenSSL failed; then nothing more may be sent.
  bool seal(ContentType type, Bytes plain, Buffer& out);
};

class Tls12Opener : public Tls12Key {
 public:
  Tls12Opener(const Tls12Suite& suite, Bytes secret, std::uint64_t number)
      : Tls12Key(suite, secret, Use::open, number) {}
  // Appends the content of a whole record and returns its type. Returns nullopt if the peer did not seal it,
  // or it is invalid; then `plain` is unchanged.
  std::optional<ContentType> open(Bytes record, Buffer& plain);
};

}  // namespace longhaul
