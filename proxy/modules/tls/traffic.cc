// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/traffic.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <new>

#include "crypto/tls12_records.h"
#include "crypto/tls_records.h"
#include "crypto/tls_secrets.h"
#include "proxy/modules/tls/records.h"

namespace longhaul::tls {
namespace {

template <auto get>
Secret<SSL3_RANDOM_SIZE> random_of(const SSL* ssl) {
  Secret<SSL3_RANDOM_SIZE> random;
  get(ssl, reinterpret_cast<unsigned char*>(random.bytes.data()), random.bytes.size());
  return random;
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

// Of the two ephemeral keys of the handshake; empty if they are not for Diffie-Hellman, or not kept.
SecretBytes shared_secret(SSL* ssl) {
  EVP_PKEY *ours = nullptr, *theirs = nullptr;
  SSL_get_tmp_key(ssl, &ours);
  SSL_get_peer_tmp_key(ssl, &theirs);
  const Key own(ours), peer(theirs);
  if (!own || !peer) return {};
  const std::unique_ptr<EVP_PKEY_CTX, FreeKey> context(EVP_PKEY_CTX_new(own.get(), nullptr));
  std::size_t size = 0;
  const bool derives = context && EVP_PKEY_derive_init(context.get()) == 1 &&
                       EVP_PKEY_derive_set_peer(context.get(), peer.get()) == 1 &&
                       EVP_PKEY_derive(context.get(), nullptr, &size) == 1;
  SecretBytes shared(derives ? size : 0);
  if (derives &&
      EVP_PKEY_derive(context.get(), reinterpret_cast<unsigned char*>(shared.data()), &size) == 1 &&
      size == shared.size())
    return shared;
  ERR_clear_error();
  return {};
}

}  // namespace

void TrafficSecrets::note(std::string_view line) {
  if (line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) client_ = key_log_secret(line);
  if (line.starts_with("SERVER_TRAFFIC_SECRET_0 ")) server_ = key_log_secret(line);
}

// libssl derives the client's secret when it has the client's Finished. From the same input it follows as
// soon as the server's is sent, and the server's secret, which libssl gives at that time, tells whether the
// input was right.
std::optional<Traffic> TrafficSecrets::foresee(SSL* ssl, Bytes transcript) const {
  if (SSL_version(ssl) != TLS1_3_VERSION || server_.empty()) return std::nullopt;
  const SSL_CIPHER* const cipher = SSL_get_current_cipher(ssl);
  const auto suite = cipher ? RecordSuite::of(SSL_CIPHER_get_protocol_id(cipher)) : std::nullopt;
  const SecretBytes shared = shared_secret(ssl);
  if (!suite || shared.empty()) return std::nullopt;
  std::array<std::byte, EVP_MAX_MD_SIZE> digest;
  if (EVP_Digest(transcript.data(), transcript.size(), reinterpret_cast<unsigned char*>(digest.data()),
                 nullptr, suite->digest, nullptr) != 1)
    throw std::bad_alloc();
  auto secrets = application_secrets(*suite, shared, Bytes(digest).first(suite->secret_bytes()));
  if (secrets.server != server_) return std::nullopt;
  return Traffic{.suite = SSL_CIPHER_get_protocol_id(cipher),
                 .client = std::move(secrets.client),
                 .server = std::move(secrets.server)};
}

std::optional<Traffic> TrafficSecrets::take(SSL* ssl, Bytes last_said) {
  Traffic traffic{.suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl)),
                  .client = std::move(client_),
                  .server = std::move(server_),
                  .is_1_2 = SSL_version(ssl) == TLS1_2_VERSION};
  if (!traffic.is_1_2) {
    // A record for each session.
    Records said;
    said.push(last_said);
    for (Bytes each; said.next(each) == Records::Next::record;) ++traffic.server_records;
    if (!RecordSuite::of(traffic.suite) || traffic.client.empty() || traffic.server.empty()) return std::nullopt;
    return traffic;
  }
  const auto suite = Tls12Suite::of(traffic.suite);
  if (!suite) return std::nullopt;
  Secret<SSL_MAX_MASTER_KEY_LENGTH> master;
  const std::size_t size = SSL_SESSION_get_master_key(
      SSL_get_session(ssl), reinterpret_cast<unsigned char*>(master.bytes.data()), master.bytes.size());
  Tls12Secrets secrets =
      tls12_secrets(*suite, Bytes(master.bytes).first(size), random_of<SSL_get_server_random>(ssl).bytes,
                    random_of<SSL_get_client_random>(ssl).bytes);
  traffic.client = std::move(secrets.client), traffic.server = std::move(secrets.server);
  traffic.server_records = 1;  // Finished
  return traffic;
}

}  // namespace longhaul::tls
