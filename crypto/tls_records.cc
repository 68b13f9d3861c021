// SPDX-License-Identifier: Apache-2.0
#include "crypto/tls_records.h"

#include <openssl/objects.h>

#include <charconv>
#include <cstring>
#include <new>

#include "crypto/tls_secrets.h"

namespace longhaul {
namespace {

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

std::optional<RecordSuite> RecordSuite::of(std::uint16_t number) {
  switch (number) {
    case 0x1301:
      return RecordSuite{NID_aes_128_gcm, EVP_sha256()};
    case 0x1302:
      return RecordSuite{NID_aes_256_gcm, EVP_sha384()};
    case 0x1303:
      return RecordSuite{NID_chacha20_poly1305, EVP_sha256()};
    default:
      return std::nullopt;
  }
}

SecretBytes key_log_secret(std::string_view line) {
  const std::string_view digits = line.substr(line.rfind(' ') + 1);
  SecretBytes bytes(digits.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::uint8_t value = 0;
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, value, 16);
    bytes.data()[i] = std::byte{value};
  }
  return bytes;
}

RecordKey::RecordKey(const RecordSuite& suite, Bytes secret, Use use, std::uint64_t number)
    : nid_(suite.nid), digest_(suite.digest), use_(use), secret_bytes_(secret.size()) {
  if (!digest_ || secret.size() > secret_.bytes.size()) throw std::bad_alloc();
  std::memcpy(secret_.bytes.data(), secret.data(), secret.size());
  use_secret();
  number_ = number;
}

void RecordKey::expand(const char* label, MutableBytes out) const {
  expand_label(digest_, Bytes(secret_.bytes).first(secret_bytes_), label, {}, out);
}

void RecordKey::use_secret() {
  Secret<32> key;
  // All other ciphers of TLS 1.3 have keys of 32 bytes (RFC 8446, appendix B.4).
  const MutableBytes used = MutableBytes(key.bytes).first(nid_ == NID_aes_128_gcm ? 16 : 32);
  expand("key", used);
  expand("iv", iv_.bytes);
  number_ = 0;
  cipher_ = make_aead(nid_, {raw(used.data()), used.size()}, use_);
}

void RecordKey::update() {
  Secret<EVP_MAX_MD_SIZE> next;
  expand("traffic upd", MutableBytes(next.bytes).first(secret_bytes_));
  secret_ = next;
  use_secret();
}

// Section 5.3. A number is never used twice: keys are changed long before 2^64 records.
RecordKey::Nonce RecordKey::next_nonce() {
  Nonce nonce;
  std::memcpy(nonce.data(), iv_.bytes.data(), nonce.size());
  std::uint64_t number = number_++;
  for (std::size_t i = 0; i < 8; ++i)
    nonce[kNonceBytes - 1 - i] ^= static_cast<unsigned char>(number >> (8 * i) & 0xff);
  return nonce;
}

// -------------------------------------------------------------------------------------------------------
// sealing

bool RecordSealer::seal(ContentType type, std::span<const Bytes> pieces, Buffer& out) {
  std::size_t left = 0, taken = 0;
  const std::size_t before = out.size();
  for (Bytes piece : pieces) left += piece.size();
  constexpr std::size_t kAround = kRecordHeadBytes + 1 + kTagBytes;
  std::size_t filled = before, records = (left + kMaxRecordContent - 1) / kMaxRecordContent;
  out.resize(filled + left + records * kAround);
  while (left > 0) {
    std::size_t size = std::min(left, kMaxRecordContent);
    if (!seal_one(type, size, pieces, taken, out.data() + filled)) {
      out.resize(before);
      return false;
    }
    left -= size;
    filled += size + kAround;
  }
  return true;
}

bool RecordSealer::seal_one(ContentType type, std::size_t size, std::span<const Bytes>& pieces,
                            std::size_t& taken, std::byte* out) {
  std::size_t body = size + 1 + kTagBytes;
  // On the wire, every record looks like application data of TLS 1.2.
  const std::array<unsigned char, kRecordHeadBytes> head{23, 3, 3, static_cast<unsigned char>(body >> 8),
                                                         static_cast<unsigned char>(body & 0xff)};
  std::memcpy(out, head.data(), head.size());
  unsigned char* place = raw(out) + kRecordHeadBytes;
  Nonce nonce = next_nonce();
  if (!cipher().start(nonce, head)) return false;
  while (size > 0) {
    Bytes piece = pieces.front().subspan(taken);
    piece = piece.first(std::min(size, piece.size()));
    if (!piece.empty() && !cipher().add(piece, place)) return false;
    place += piece.size();
    size -= piece.size();
    taken += piece.size();
    if (taken == pieces.front().size()) {
      pieces = pieces.subspan(1);
      taken = 0;
    }
  }
  const auto inner = static_cast<std::byte>(type);
  return cipher().add(Bytes(&inner, 1), place) && cipher().seal(place + 1);
}

// -------------------------------------------------------------------------------------------------------
// opening

std::optional<std::size_t> RecordOpener::record_size(Bytes head) {
  const unsigned char* at = raw(head.data());
  std::size_t body = static_cast<std::size_t>(at[3]) << 8 | at[4];
  // Section 5.2: padding and type may take 256 bytes beyond the content.
  if (at[0] != static_cast<unsigned char>(ContentType::application_data) || at[1] != 3 || body <= kTagBytes ||
      body > kMaxRecordContent + 256)
    return std::nullopt;
  return kRecordHeadBytes + body;
}

bool RecordOpener::is_next(Bytes record) {
  Buffer plain;
  const bool opens = open(record, plain).has_value();
  OPENSSL_cleanse(plain.data(), plain.size());
  use_number_again();
  return opens;
}

std::optional<ContentType> RecordOpener::open(Bytes record, Buffer& plain) {
  Bytes head = record.first(kRecordHeadBytes), sealed = record.subspan(kRecordHeadBytes);
  Bytes tag = sealed.last(kTagBytes);
  sealed = sealed.first(sealed.size() - kTagBytes);
  std::size_t filled = plain.size();
  plain.resize(filled + sealed.size());
  Nonce nonce = next_nonce();
  unsigned char* out = raw(plain.data()) + filled;
  bool genuine = cipher().start(nonce, std::span(raw(head.data()), head.size())) && cipher().add(sealed, out) &&
                 cipher().open(raw(tag.data()));
  // The content, its type, and zeros as padding.
  std::size_t end = sealed.size();
  while (genuine && end > 0 && out[end - 1] == 0) --end;
  if (!genuine || end == 0 || end - 1 > kMaxRecordContent) {
    plain.resize(filled);
    return std::nullopt;
  }
  auto type = static_cast<ContentType>(out[end - 1]);
  plain.resize(filled + end - 1);
  return type;
}

}  // namespace longhaul
