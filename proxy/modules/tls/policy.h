// SPDX-License-Identifier: Apache-2.0
// Which TLS connections are terminated, and with which certificate: the tables [[tls_server]]. Immutable after it is
// made; what is not listed is never touched.
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
  bool is_private = false;  // nothing of it goes into a dictionary (dedup = false)
  Context to_client;  // with certificate and key; where certificates are minted, without the certificate
  Context to_server;  // with the authorities that the server is verified by
  std::unique_ptr<Mint> mint;  // null: the server's own certificate is shown (mode = "server")
  std::shared_ptr<modules::HeldKey>
      held;  // another device has the key of to_client (SlowAnswer); null: to_client has it
  std::shared_ptr<modules::HeldKey> mint_held;  // another device has the mint's (SlowLeaf)
  modules::HeldKey* device() const { return held ? held.get() : mint_held.get(); }
  // Of the certificate that clients get.
  const EVP_PKEY* public_key() const {
    return mint ? mint->key() : X509_get0_pubkey(SSL_CTX_get0_certificate(to_client.get()));
  }
  std::string label;  // for people
  std::string stamp;  // a digest of all of this: with another one, sessions of clients are not valid any more
};

class Policy final : public modules::Secrets {
 public:
  // ServerTable::read
  static config::TextResult<std::shared_ptr<const modules::Secrets>> read(std::span<const modules::ServerFiles> servers);

  // Whether any entry has this server.
  bool lists(const modules::Address& server) const;
  // The first entry that has this server, this name and this client; null: none. The name's case does not matter.
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

// "intranet.corp" of "Intranet.Corp."; empty: not a host name (RFC 6066, section 3).
std::string plain_name(std::string_view name);

}  // namespace longhaul::tls
