// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/ech.h"

#include <openssl/rand.h>

#include <array>
#include <new>

#include "codecs/byte_reader.h"
#include "proxy/modules/tls/policy.h"

namespace longhaul::tls {
namespace {

std::optional<Bytes> sized16(ByteReader& in) {
  const auto size = in.fixed16();
  return size ? in.bytes(*size) : std::nullopt;
}
std::optional<Bytes> sized8(ByteReader& in) {
  const auto size = in.u8();
  return size ? in.bytes(*size) : std::nullopt;
}

bool has_suite(Bytes suites, const EchOffer& offer) {
  for (ByteReader in(suites); in.remaining() >= 4;)
    if (const auto kdf = in.fixed16(), aead = in.fixed16(); *kdf == offer.kdf && *aead == offer.aead)
      return true;
  return false;
}

// ECHConfigContents
bool is_for(Bytes contents, const EchOffer& offer, std::string_view public_name) {
  ByteReader in(contents);
  const auto config = in.u8();
  const auto kem = in.fixed16();
  const auto key = sized16(in), suites = sized16(in);
  const auto longest = in.u8();
  const auto name = sized8(in);
  if (!config || !kem || !key || !suites || !longest || !name) return false;
  return *config == offer.config && has_suite(*suites, offer) && plain_name(as_text(*name)) == public_name;
}

}  // namespace

std::optional<EchOffer> ech_offer(Bytes extension) {
  ByteReader in(extension);
  const auto type = in.u8();
  const auto kdf = in.fixed16(), aead = in.fixed16();
  const auto config = in.u8();
  const auto key = sized16(in), hello = sized16(in);
  if (!type || *type != 0 || !kdf || !aead || !config || !key || !hello || in.remaining() != 0)
    return std::nullopt;
  return EchOffer{.kdf = *kdf, .aead = *aead, .config = *config};
}

bool has_ech_key(Bytes configs, const EchOffer& offer, std::string_view public_name) {
  ByteReader list(configs);
  const auto all = sized16(list);
  if (!all || list.remaining() != 0) return false;
  for (ByteReader in(*all);;) {
    const auto version = in.fixed16();
    const auto contents = sized16(in);
    if (!version || !contents) return false;
    if (*version == kEchExtension && is_for(*contents, offer, public_name)) return true;
  }
}

// Like Chromium's: HKDF-SHA256, AES-128-GCM, a key of X25519, 144 bytes.
Buffer pretended_ech() {
  constexpr std::size_t kKey = 32, kHello = 144;
  std::array<unsigned char, 1 + kKey + kHello> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) throw std::bad_alloc();
  const Bytes all = std::as_bytes(std::span(random));
  Buffer made;
  for (const int byte : {0, 0, 1, 0, 1}) made.push_back(std::byte(byte));
  made.push_back(all[0]);
  for (const std::size_t byte : {std::size_t{0}, kKey}) made.push_back(std::byte(byte));
  append(made, all.subspan(1, kKey));
  for (const std::size_t byte : {std::size_t{0}, kHello}) made.push_back(std::byte(byte));
  append(made, all.subspan(1 + kKey));
  return made;
}

}  // namespace longhaul::tls
