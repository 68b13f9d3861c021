// SPDX-License-Identifier: Apache-2.0
// The TLS settings of this site: its key, and the versions, ciphers and groups that it accepts. tls_engine.h
// runs one connection.
#pragma once
#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "proxy/identity/identity.h"
#include "proxy/link/io/key_log.h"

namespace longhaul::link {

// State shared by all connections of a site. Engines share ownership of the parts that they need.
class TlsContext {
 public:
  // Throws std::runtime_error if OpenSSL refuses the identity. The secrets of all connections are written to
  // `key_log` if it is not null.
  explicit TlsContext(const identity::Identity& identity, std::shared_ptr<KeyLog> key_log = nullptr);
  SSL_CTX* get() const { return context_.get(); }
  const std::string& fingerprint() const { return fingerprint_; }  // of this site's key
  const std::shared_ptr<KeyLog>& key_log() const { return key_log_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
  std::string fingerprint_;
  std::shared_ptr<KeyLog> key_log_;
};

}  // namespace longhaul::link
