// SPDX-License-Identifier: Apache-2.0
// The configuration in force, its keys, and the TLS settings derived from them. A reload replaces all of them
// together (reload.h).
#pragma once
#include <memory>

#include "proxy/config/config.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/web_tls.h"
#include "proxy/link/io/key_log.h"
#include "proxy/link/io/tls_context.h"

namespace longhaul {

class SettingsInForce {
 public:
  // Opens [link] key_log. Throws if OpenSSL does not accept the identity.
  SettingsInForce(config::Config config, identity::Identity identity, identity::WebTls web);
  SettingsInForce(const SettingsInForce&) = delete;
  SettingsInForce& operator=(const SettingsInForce&) = delete;

  // References remain valid: replace() changes what they refer to.
  const config::Config& config() const { return config_; }
  const identity::Identity& identity() const { return identity_; }
  const identity::WebTls& web() const { return web_; }
  const link::TlsContext& tls() const { return tls_; }

  // All three must be valid. The key log stays open: [link] key_log cannot change while the daemon runs.
  void replace(config::Config config, identity::Identity identity, identity::WebTls web);

 private:
  config::Config config_;
  identity::Identity identity_;
  identity::WebTls web_;
  const std::shared_ptr<link::KeyLog> key_log_;  // null if there is none
  link::TlsContext tls_;
};

}  // namespace longhaul
