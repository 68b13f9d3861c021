// SPDX-License-Identifier: Apache-2.0
#include "crypto/tls12_records.h"

#include <openssl/objects.h>

#include <algorithm>
#include <cstring>

#include "crypto/kdf.h"

namespace longhaul {
namespace {

const unsigned char* octets(Bytes bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

}  // namespace

std::optional<Tls12Suite> Tls12Suite::of(std::uint16_t number) {
  switch (number) {
    case 0xC02B:  // ECDHE, with ECDSA and with RSA
    case 0xC02F:
      return Tls12Suite{NID_aes_128_gcm, EVP_sha256()};
    case 0xC02C:
    case 0xC030:
      return Tls12Suite{NID_aes_256_gcm, EVP_sha384()};
    case 0xCCA8:
    case 0xCCA9:
      return Tls12Suite{NID_chacha20_poly1305, EVP_sha256()};
    default:
      return std::nullopt;
  }
}

Tls12Secrets tls12_secrets(const Tls12Suite& suite, Bytes master, Bytes server_random, Bytes client_random) {
  static const Kdf kdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_TLS1_PRF, nullptr));
  const OSSL_PARAM params[] = {
      text_param(OSSL_KDF_PARAM_DIGEST, EVP_MD_get0_name(suite.digest)),
      bytes_param(OSSL_KDF_PARAM_SECRET, master),
      bytes_param(OSSL_KDF_PARAM_SEED, as_bytes("key expansion")),
      bytes_param(OSSL_KDF_PARAM_SEED, server_random),
      bytes_param(OSSL_KDF_PARAM_SEED, client_random),
      OSSL_PARAM_construct_end(),
  };
  const std::size_t key = suite.key_bytes(), iv = suite.iv_bytes();
  SecretBytes block(2 * (key + iv));
  derive(kdf.get(), params, {block.data(), block.size()});
  // The key block has both keys, then both IVs.
  const auto direction = [&](std::size_t which) {
    SecretBytes secret(key + iv);
    std::memcpy(secret.data(), block.data() + which * key, key);
    std::memcpy(secret.data() + key, block.data() + 2 * key + which * iv, iv);
    return secret;
  };
  return {direction(0), direction(1)};
}

Tls12Key::Tls12Key(const Tls12Suite& suite, Bytes secret, Use use, std::uint64_t number)
    : number_(number), iv_bytes_(suite.iv_bytes()) {
  if (secret.size() != suite.secret_bytes()) throw std::bad_alloc();
  cipher_ = make_aead(suite.nid, {octets(secret), suite.key_bytes()}, use);
  std::ranges::copy(secret.last(iv_bytes_), iv_.bytes.begin());
}

std::array<unsigned char, Tls12Key::kExplicitBytes> Tls12Key::number_bytes() const {
  std::array<unsigned char, kExplicitBytes> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(number_ >> (8 * (7 - i)) & 0xff);
  return bytes;
}

// RFC 5246, section 6.2.3.3.
Tls12Key::Associated Tls12Key::associated(std::uint8_t type, std::size_t size) const {
  Associated all{};
  std::ranges::copy(number_bytes(), all.begin());
  all[8] = type, all[9] = 3, all[10] = 3;
  all[11] = static_cast<unsigned char>(size >> 8), all[12] = static_cast<unsigned char>(size & 0xff);
  return all;
}

std::array<unsigned char, 12> Tls12Key::nonce(const unsigned char* written) const {
  std::array<unsigned char, 12> nonce;
  std::memcpy(nonce.data(), iv_.bytes.data(), nonce.size());
  if (explicit_bytes() > 0) {
    std::memcpy(nonce.data() + iv_bytes_, written, kExplicitBytes);  // RFC 5288, section 3
  } else {
    const auto number = number_bytes();  // RFC 7905, section 2
    for (std::size_t i = 0; i < number.size(); ++i) nonce[4 + i] ^= number[i];
  }
  return nonce;
}

bool Tls12Sealer::seal(ContentType type, Bytes plain, Buffer& out) {
  for (std::size_t at = 0; at < plain.size(); at += kMaxRecordContent) {
    const Bytes content = plain.subspan(at, std::min(kMaxRecordContent, plain.size() - at));
    const std::size_t body = explicit_bytes() + content.size() + kAeadTagBytes, before = out.size();
    out.resize(before + kRecordHeadBytes + body);
    auto* place = reinterpret_cast<unsigned char*>(out.data()) + before;
    const auto kind = static_cast<std::uint8_t>(type);
    const std::array<unsigned char, kRecordHeadBytes> head{kind, 3, 3, static_cast<unsigned char>(body >> 8),
                                                           static_cast<unsigned char>(body & 0xff)};
    place = std::ranges::copy(head, place).out;
    // The record's number, which is never used twice with a key.
    const auto number = number_bytes();
    if (explicit_bytes() > 0) place = std::ranges::copy(number, place).out;
    const auto unique = nonce(number.data());
    if (!cipher_->start(unique, associated(kind, content.size())) || !cipher_->add(content, place) ||
        !cipher_->seal(place + content.size())) {
      out.resize(before);
      return false;
    }
    ++number_;
  }
  return true;
}

std::optional<ContentType> Tls12Opener::open(Bytes record, Buffer& plain) {
  const std::size_t around = kRecordHeadBytes + explicit_bytes() + kAeadTagBytes;
  if (record.size() < around || record.size() > around + kMaxRecordContent) return std::nullopt;
  const auto kind = std::to_integer<std::uint8_t>(record[0]);
  if (kind < 21 || kind > 23 || record[1] != std::byte{3} || record[2] != std::byte{3}) return std::nullopt;
  const Bytes text = record.subspan(kRecordHeadBytes + explicit_bytes(), record.size() - around);
  const std::size_t filled = plain.size();
  plain.resize(filled + text.size());
  const auto unique = nonce(octets(record) + kRecordHeadBytes);
  const bool genuine = cipher_->start(unique, associated(kind, text.size())) &&
                       cipher_->add(text, reinterpret_cast<unsigned char*>(plain.data()) + filled) &&
                       cipher_->open(octets(record) + record.size() - kAeadTagBytes);
  ++number_;
  if (!genuine) {
    plain.resize(filled);
    return std::nullopt;
  }
  return static_cast<ContentType>(kind);
}

}  // namespace longhaul
