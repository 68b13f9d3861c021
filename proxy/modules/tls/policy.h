// SPDX-License-Identifier: Apache-2.0
// Which TLS connections are terminated, and with which certificate: the tables [[tls_server]]. Immutable once
// made; connections to servers that are not listed are never terminated.
#pragma once
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/modules/secrets.h"
#include "proxy/modules/tls/mint.h"

namespace longhaul::tls {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

struct Entry {
  std::vector<modules::AddressRange> addresses, clients;
  std::vector<config::NamePattern> names;
  bool is_private = false;  // none of its data is stored in a dictionary (dedup = false)
  Context to_client;  // with certificate and key; if certificates are minted, without the certificate
  Context to_server;  // with the authorities by which the server is verified
  std::unique_ptr<Mint> mint;  // null: the server's own certificate is used (mode = "server")
  std::shared_ptr<modules::HeldKey>
      held;  // another device has the key of to_client (SlowAnswer); null: to_client has it
  std::shared_ptr<modules::HeldKey> mint_held;  // another device has the mint's (SlowLeaf)
  modules::HeldKey* device() const { return held ? held.get() : mint_held.get(); }
  // Of the certificate that clients receive.
  const EVP_PKEY* public_key() const {
    return mint ? mint->key() : X509_get0_pubkey(SSL_CTX_get0_certificate(to_client.get()));
  }
  std::string label;    // for display: its names
  std::string table;    // the same: "[[tls_server]] 2", the second one in the file
  std::string stamp;  // a digest of the entry: when it changes, sessions of clients become invalid
};

class Policy final : public modules::Secrets {
 public:
  // ServerTable::read
  static config::TextResult<std::shared_ptr<const modules::Secrets>> read(std::span<const modules::ServerFiles> servers);

  // Whether any entry lists this server.
  bool lists(const modules::Address& server) const;
  // The first entry with this server, this name and this client; null if there is none. Case-insensitive.
  const Entry* find(const modules::Address& server, std::string_view name, const modules::Address& client) const;

  std::vector<std::string> lines() const override { return lines_; }
  std::vector<std::string> warnings() const override { return warnings_; }
  std::vector<std::string> try_out() const override;
  // Opens the devices that hold keys, without waiting for them.
  void begin() const;

 private:
  std::vector<Entry> entries_;
  std::vector<std::string> lines_, warnings_;
};

// For example, "intranet.corp" for "Intranet.Corp."; empty if it is not a host name (RFC 6066, section 3).
std::string plain_name(std::string_view name);

}  // namespace longhaul::tls
