// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/client_hello.h"

#include "codecs/byte_reader.h"
#include "crypto/tls12_records.h"
#include "proxy/modules/tls/policy.h"

namespace longhaul::tls {

Bytes hello_extension(SSL* ssl, unsigned type) {
  const unsigned char* data = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, type, &data, &size) != 1) return {};
  return std::as_bytes(std::span(data, size));
}

// A list, of which only its single host name is used.
std::string hello_name(SSL* ssl) {
  const Bytes extension = hello_extension(ssl, TLSEXT_TYPE_server_name);
  ByteReader in(extension);
  const auto list = in.fixed16();
  const auto type = in.u8();
  const auto size = in.fixed16();
  if (!list || !type || !size || *type != 0 || in.remaining() != *size || *list != *size + 3u) return {};
  const Bytes name = extension.last(*size);
  return plain_name({reinterpret_cast<const char*>(name.data()), name.size()});
}

bool hello_offers_1_3(SSL* ssl) {
  const Bytes versions = hello_extension(ssl, TLSEXT_TYPE_supported_versions);
  for (std::size_t at = 1; at + 1 < versions.size(); at += 2)
    if (versions[at] == std::byte{3} && versions[at + 1] == std::byte{4}) return true;
  return false;
}

bool hello_offers_1_2(SSL* ssl, const EVP_PKEY* key) {
  const unsigned char* suites = nullptr;
  const std::size_t size = SSL_client_hello_get0_ciphers(ssl, &suites);
  if (!key || SSL_client_hello_get0_legacy_version(ssl) < TLS1_2_VERSION) return false;
  const bool is_rsa =
      EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA || EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA_PSS;
  for (std::size_t at = 0; at + 1 < size; at += 2) {
    const auto suite = static_cast<std::uint16_t>(suites[at] << 8 | suites[at + 1]);
    if (Tls12Suite::of(suite) && Tls12Suite::is_with_rsa(suite) == is_rsa) return true;
  }
  return false;
}

std::optional<Bytes> hello_protocols(SSL* ssl) {
  const Bytes extension = hello_extension(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation);
  if (extension.size() <= 2) return Bytes{};
  const Bytes all = extension.subspan(2);
  for (std::size_t at = 0; at < all.size(); at += 1 + std::to_integer<std::size_t>(all[at]))
    if (all[at] == std::byte{0} || std::to_integer<std::size_t>(all[at]) >= all.size() - at) return std::nullopt;
  return all;
}

}  // namespace longhaul::tls
