// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/ntlm.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/seal/names.h"

namespace longhaul::smb::seal {
namespace {

constexpr std::string_view kSignature{"NTLMSSP\0", 8};
constexpr std::size_t kAuthenticateHead = 64;
constexpr std::size_t kProofBytes = 16;
// [MS-NLMP] 2.2.2.5
constexpr std::uint32_t kUnicode = 1, kAnonymous = 0x800, kKeyExchange = 0x4000'0000;

// 2.2.1.3: a length, the space for it, and an offset. Empty fields may have any offset.
std::optional<Bytes> ntlm_field(Bytes message, std::size_t at) {
  const auto size = load_le<std::uint16_t>(message, at);
  const auto offset = load_le<std::uint32_t>(message, at + 4);
  if (size == 0) return Bytes();
  if (offset > message.size() || size > message.size() - offset) return std::nullopt;
  return message.subspan(offset, size);
}

Secret<16> hmac_md5(Bytes key, std::initializer_list<Bytes> parts) {
  Buffer whole;
  for (const Bytes part : parts) append(whole, part);
  Secret<16> result;
  unsigned size = 0;
  HMAC(EVP_md5(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(whole.data()), whole.size(),
       reinterpret_cast<unsigned char*>(result.bytes.data()), &size);
  return result;
}

// Used for one key, once: OpenSSL 3 has RC4 only in a provider that is not loaded.
void rc4(Bytes key, std::span<std::byte> data) {
  Secret<256> state;
  auto& s = state.bytes;
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = std::byte(i);
  for (std::size_t i = 0, j = 0; i < s.size(); ++i) {
    j = (j + std::to_integer<std::size_t>(s[i]) + std::to_integer<std::size_t>(key[i % key.size()])) & 255;
    std::swap(s[i], s[j]);
  }
  std::size_t i = 0, j = 0;
  for (std::byte& byte : data) {
    i = (i + 1) & 255;
    j = (j + std::to_integer<std::size_t>(s[i])) & 255;
    std::swap(s[i], s[j]);
    byte ^= s[(std::to_integer<std::size_t>(s[i]) + std::to_integer<std::size_t>(s[j])) & 255];
  }
}

Buffer to_wire(std::u16string_view text) {
  Buffer wire(2 * text.size());
  for (std::size_t i = 0; i < text.size(); ++i) store_le(wire.data() + 2 * i, text[i]);
  return wire;
}

}  // namespace

std::uint32_t ntlm_message_type(Bytes message) {
  if (message.size() < 12 || !as_text(message).starts_with(kSignature)) return 0;
  return load_le<std::uint32_t>(message, 8);
}

std::optional<NtlmChallenge> parse_ntlm_challenge(Bytes message) {
  NtlmChallenge challenge;
  if (ntlm_message_type(message) != 2 || message.size() < 24 + challenge.size()) return std::nullopt;
  std::memcpy(challenge.data(), message.data() + 24, challenge.size());
  return challenge;
}

std::optional<NtlmAuthenticate> parse_ntlm_authenticate(Bytes message) {
  if (ntlm_message_type(message) != 3 || message.size() < kAuthenticateHead) return std::nullopt;
  const auto lm = ntlm_field(message, 12), nt = ntlm_field(message, 20), domain = ntlm_field(message, 28),
             user = ntlm_field(message, 36), key = ntlm_field(message, 52);
  if (!lm || !nt || !domain || !user || !key) return std::nullopt;
  return NtlmAuthenticate{.lm = *lm,
                          .nt = *nt,
                          .domain = *domain,
                          .user = *user,
                          .random_key = *key,
                          .flags = load_le<std::uint32_t>(message, 60)};
}

bool NtlmAuthenticate::is_anonymous() const {
  return (flags & kAnonymous) || (user.empty() && nt.empty() && lm.size() <= 1);
}

// Without Unicode, names are in the client's code page, of which only ASCII is known.
std::u16string NtlmAuthenticate::user_name() const {
  return flags & kUnicode ? from_wire(user) : from_utf8(as_text(user));
}
std::u16string NtlmAuthenticate::domain_name() const {
  return flags & kUnicode ? from_wire(domain) : from_utf8(as_text(domain));
}

std::optional<SecretBytes> ntlm_key(const NtlmChallenge& challenge, const NtlmAuthenticate& message,
                                    const NtHash& hash) {
  if (message.is_version1()) return std::nullopt;
  const bool exchanges = message.flags & kKeyExchange;
  if (exchanges && message.random_key.size() != 16) return std::nullopt;
  const Bytes proof = message.nt.first(kProofBytes), blob = message.nt.subspan(kProofBytes);
  // NTOWFv2: the domain as sent.
  const Secret<16> key =
      hmac_md5(hash.bytes, {to_wire(upper(message.user_name())), to_wire(message.domain_name())});
  const Secret<16> expected = hmac_md5(key.bytes, {challenge, blob});
  if (CRYPTO_memcmp(expected.bytes.data(), proof.data(), kProofBytes) != 0) return std::nullopt;
  const Secret<16> base = hmac_md5(key.bytes, {proof});
  SecretBytes session(16);
  if (exchanges) {
    std::memcpy(session.data(), message.random_key.data(), session.size());
    rc4(base.bytes, {session.data(), session.size()});
  } else {
    std::memcpy(session.data(), base.bytes.data(), session.size());
  }
  return session;
}

}  // namespace longhaul::smb::seal
