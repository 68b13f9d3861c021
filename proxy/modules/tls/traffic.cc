// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/traffic.h"

#include <array>

#include "crypto/tls12_records.h"
#include "crypto/tls_records.h"
#include "proxy/modules/tls/records.h"

namespace longhaul::tls {
namespace {

template <auto get>
Secret<SSL3_RANDOM_SIZE> random_of(const SSL* ssl) {
  Secret<SSL3_RANDOM_SIZE> random;
  get(ssl, reinterpret_cast<unsigned char*>(random.bytes.data()), random.bytes.size());
  return random;
}

}  // namespace

void TrafficSecrets::note(std::string_view line) {
  if (line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) client_ = key_log_secret(line);
  if (line.starts_with("SERVER_TRAFFIC_SECRET_0 ")) server_ = key_log_secret(line);
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
