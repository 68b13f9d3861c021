// SPDX-License-Identifier: Apache-2.0
// Records of TLS 1.3 (RFC 8446, sections 5 and 7) in one direction of a connection after its handshake:
// encrypted from scattered pieces, decrypted into their final buffer. libssl would copy every byte twice
// more, into its own buffer and out of it. libssl does the handshake and provides the secrets.
#pragma once
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "codecs/byte_writer.h"
#include "crypto/aead.h"
#include "crypto/secret.h"

namespace longhaul {

enum class ContentType : std::uint8_t { alert = 21, handshake = 22, application_data = 23 };

inline constexpr std::size_t kRecordHeadBytes = 5;
inline constexpr std::size_t kMaxRecordContent = 16 * 1024;

// The parameters of a TLS 1.3 cipher suite for records (RFC 8446, appendix B.4).
struct RecordSuite {
  int nid;
  const EVP_MD* digest;
  // By the number in ServerHello; nullopt for a TLS 1.3 suite that is not supported.
  static std::optional<RecordSuite> of(std::uint16_t number);
  std::size_t secret_bytes() const { return static_cast<std::size_t>(EVP_MD_get_size(digest)); }
};

// The secret at the end of a line of an NSS key log, which libssl passes to its key log callback.
SecretBytes key_log_secret(std::string_view line);

// A traffic secret, the key derived from it, and the number of the next record. Throws std::bad_alloc if
// OpenSSL has no memory; no input from the peer can cause that.
class RecordKey {
 public:
  using Use = Aead::Use;
  // `number`: of the next record with this secret.
  RecordKey(const RecordSuite& suite, Bytes secret, Use use, std::uint64_t number = 0);
  RecordKey(const RecordKey&) = delete;
  RecordKey& operator=(const RecordKey&) = delete;

  // Replaces the secret by its next generation (section 7.2), and counts records from zero again.
  void update();

 protected:
  static constexpr std::size_t kTagBytes = kAeadTagBytes, kNonceBytes = 12;
  using Nonce = std::array<unsigned char, kNonceBytes>;

  Nonce next_nonce();
  void use_number_again() { --number_; }  // only to open: with it, a key seals once
  Aead& cipher() const { return *cipher_; }

 private:
  void use_secret();
  void expand(const char* label, MutableBytes out) const;

  int nid_;
  const EVP_MD* digest_;
  std::unique_ptr<Aead> cipher_;
  Use use_;
  Secret<EVP_MAX_MD_SIZE> secret_;
  std::size_t secret_bytes_;
  Secret<kNonceBytes> iv_;
  std::uint64_t number_ = 0;
};

class RecordSealer : public RecordKey {
 public:
  RecordSealer(const RecordSuite& suite, Bytes secret, std::uint64_t number = 0)
      : RecordKey(suite, secret, Use::seal, number) {}
  // Appends as many records as needed for all pieces, in order. Returns false if OpenSSL failed; then nothing
  // more may be sent.
  bool seal(ContentType type, std::span<const Bytes> pieces, Buffer& out);

 private:
  bool seal_one(ContentType type, std::size_t size, std::span<const Bytes>& pieces, std::size_t& taken,
                std::byte* out);
};

class RecordOpener : public RecordKey {
 public:
  RecordOpener(const RecordSuite& suite, Bytes secret, std::uint64_t number = 0)
      : RecordKey(suite, secret, Use::open, number) {}

  // The size of the whole record, given its complete head; nullopt if the head is invalid.
  static std::optional<std::size_t> record_size(Bytes head);
  // Whether open() would accept the record now; nothing changes.
  bool is_next(Bytes record);
  // Appends the content of a whole record and returns its type. Returns nullopt if the peer did not seal it,
  // or its content is invalid; then `plain` is unchanged.
  std::optional<ContentType> open(Bytes record, Buffer& plain);
};

}  // namespace longhaul
