// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/last_alert.h"

#include <array>

#include "crypto/tls12_records.h"
#include "crypto/tls_records.h"

namespace longhaul::tls {

void LastAlert::note(std::string_view line) {
  if (line.starts_with("CLIENT_HANDSHAKE_TRAFFIC_SECRET ")) shaking_ = key_log_secret(line);
  secrets_.note(line);
}

void LastAlert::sent(int type, Bytes sent) {
  records_ += type == SSL3_RT_HEADER;
  has_new_key_ |= type == SSL3_RT_HANDSHAKE && !sent.empty() && sent[0] == std::byte{SSL3_MT_KEY_UPDATE};
}

Buffer LastAlert::seal(SSL* ssl, std::uint8_t description, When when) {
  const auto traffic = secrets_.take(ssl, {});
  if (!traffic || has_new_key_) return {};
  const std::array content{std::byte{SSL3_AL_FATAL}, std::byte{description}};
  const Bytes piece(content);
  Buffer record;
  bool is_sealed = false;
  if (traffic->is_1_2) {
    // After Finished, which was number 0. For AES-GCM the number is also half of the nonce, which libssl
    // counts from a random value: it has not used this one.
    is_sealed = Tls12Sealer(*Tls12Suite::of(traffic->suite), traffic->client, 1 + records_)
                    .seal(ContentType::alert, piece, record);
  } else {
    // Finished was number 0, too, but is not sent.
    const bool is_first = when == When::shaking;
    RecordSealer sealer(*RecordSuite::of(traffic->suite), is_first ? shaking_ : traffic->client,
                        is_first ? 0 : records_);
    is_sealed = sealer.seal(ContentType::alert, std::span(&piece, 1), record);
  }
  return is_sealed ? record : Buffer();
}

}  // namespace longhaul::tls
