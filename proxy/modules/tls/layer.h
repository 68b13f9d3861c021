// SPDX-License-Identifier: Apache-2.0
// The record layer towards a client after the handshake, for its version and suite, at the near half. Other
// classes interpret the records.
#pragma once
#include <cstdint>
#include <optional>

#include "crypto/tls12_records.h"
#include "crypto/tls_records.h"

namespace longhaul::tls {

class Layer {
 public:
  // As in Keys. The numbers are those of the next records. In TLS 1.3 no records were encrypted with the
  // secrets before.
  struct Secrets {
    std::uint16_t suite = 0;
    Bytes client, server;
    std::uint64_t client_number = 0, server_number = 0;
  };
  // Whether the suite exists, with secrets of that size.
  static bool fits(const Secrets& secrets) {
    if (const auto suite = RecordSuite::of(secrets.suite))
      return secrets.client.size() == suite->secret_bytes() && secrets.server.size() == suite->secret_bytes();
    const auto suite = Tls12Suite::of(secrets.suite);
    return suite && secrets.client.size() == suite->secret_bytes() && secrets.server.size() == suite->secret_bytes();
  }
  explicit Layer(const Secrets& secrets) {
    if (const auto suite = RecordSuite::of(secrets.suite)) {
      opener_.emplace(*suite, secrets.client, secrets.client_number);
      sealer_.emplace(*suite, secrets.server, secrets.server_number);
    } else {
      // The client's Finished was encrypted, too.
      opener_1_2_.emplace(*Tls12Suite::of(secrets.suite), secrets.client, secrets.client_number + 1);
      sealer_1_2_.emplace(*Tls12Suite::of(secrets.suite), secrets.server, secrets.server_number);
    }
  }

  bool is_1_2() const { return opener_1_2_.has_value(); }
  bool may_come(Bytes record) const {
    return is_1_2() ? record[0] >= std::byte{21} && record[0] <= std::byte{23} : RecordOpener::record_size(record).has_value();
  }
  // Only in TLS 1.3: whether the client sealed this record with these secrets, as the next one.
  bool is_next(Bytes record) { return may_come(record) && opener_->is_next(record); }
  std::optional<ContentType> open(Bytes record, Buffer& plain) {
    return is_1_2() ? opener_1_2_->open(record, plain) : opener_->open(record, plain);
  }
  // As many records as needed for all pieces.
  bool seal(ContentType type, std::span<const Bytes> pieces, Buffer& out) {
    if (!is_1_2()) return sealer_->seal(type, pieces, out);
    if (pieces.size() == 1) return sealer_1_2_->seal(type, pieces[0], out);
    Buffer all;
    for (const Bytes piece : pieces) append(all, piece);
    return sealer_1_2_->seal(type, all, out);
  }
  // KeyUpdate, only in TLS 1.3 (RFC 8446, section 4.6.3).
  void update_client() { opener_->update(); }
  void update_server() { sealer_->update(); }

 private:
  std::optional<RecordOpener> opener_;
  std::optional<RecordSealer> sealer_;
  std::optional<Tls12Opener> opener_1_2_;
  std::optional<Tls12Sealer> sealer_1_2_;
};

}  // namespace longhaul::tls
