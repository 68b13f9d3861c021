// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/policy.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <map>

#include "proxy/modules/tls/leg.h"

namespace longhaul::tls {
namespace {

const modules::ServerFile* file_of(const modules::ServerFiles& server, std::string_view key) {
  const auto found = std::ranges::find(server.files, key, &modules::ServerFile::key);
  return found == server.files.end() ? nullptr : &*found;
}

// Without the key: a certificate has only one key.
std::string stamp_of(const modules::ServerFiles& server) {
  Buffer all;
  const auto add = [&](Bytes bytes) {
    const std::uint64_t size = bytes.size();
    append(all, std::as_bytes(std::span(&size, 1)));
    append(all, bytes);
  };
  const auto add_ranges = [&](const std::vector<modules::AddressRange>& ranges) {
    for (const auto& range : ranges) add(range.address), add(std::as_bytes(std::span(&range.prefix_length, 1)));
    add({});
  };
  add_ranges(server.addresses), add_ranges(server.clients);
  const auto add_text = [&](const std::string& text) { add(std::as_bytes(std::span(text))); };
  for (const auto& pattern : server.names) add_text(pattern.to_text());
  for (const std::string& off : server.off) add_text(off);
  for (const auto& [key, value] : server.chosen) add_text(value);
  for (const char* key : {"certificate", "ca"})
    if (const auto* file = file_of(server, key)) add_text(file->key), add(file->content);
  std::string digest(32, '\0');
  if (EVP_Digest(all.data(), all.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  return digest;
}

bool contains(const std::vector<modules::AddressRange>& ranges, const modules::Address& address) {
  return std::ranges::any_of(ranges, [&](const auto& range) { return range.contains(address); });
}

// OpenSSL needs some 10 ms to read the system's authorities, on the daemon's loop: read once for all tables
// that add the same ones.
class AllAuthorities {
 public:
  // Null if `added` has no certificate in PEM form. Throws std::bad_alloc.
  X509_STORE* with(const modules::ServerFile* added) {
    const Bytes content = added ? Bytes(added->content) : Bytes();
    const std::string key(reinterpret_cast<const char*>(content.data()), content.size());
    if (const auto found = by_content_.find(key); found != by_content_.end()) return found->second.get();
    const auto certificates = read_certificates(content);
    if (added && certificates.empty()) return nullptr;
    Authorities authorities = authorities_of_the_system();
    for (const Certificate& each : certificates)
      if (X509_STORE_add_cert(authorities.get(), each.get()) != 1) throw std::bad_alloc();
    return by_content_.emplace(key, std::move(authorities)).first->second.get();
  }

 private:
  std::map<std::string, Authorities> by_content_;
};

void add_chain(SSL_CTX* context, std::span<const Certificate> chain) {
  for (const Certificate& each : chain)
    if (SSL_CTX_add1_chain_cert(context, each.get()) != 1) throw std::bad_alloc();
}

bool is_minted(const modules::ServerFiles& server) {
  return std::ranges::find(server.chosen, std::pair(std::string("mode"), std::string("mint"))) != server.chosen.end();
}

// The server's own certificate, supplied by the operator. Like use_mint(), returns a description.
config::TextResult<std::string> use_certificate(Entry& entry, std::vector<Certificate> chain, Key key, const std::string& file,
                                                std::vector<std::string>& warnings) {
  if (SSL_CTX_use_certificate(entry.to_client.get(), chain[0].get()) != 1 ||
      (key && SSL_CTX_use_PrivateKey(entry.to_client.get(), key.get()) != 1))
    return config::TextError{file + ": OpenSSL rejects it: " + last_error() + '.'};
  add_chain(entry.to_client.get(), std::span(chain).subspan(1));
  for (const config::NamePattern& pattern : entry.names) {
    const std::string probe = (pattern.subdomains ? "name." : "") + pattern.name;
    if (X509_check_host(chain[0].get(), probe.data(), probe.size(), 0, nullptr) != 1)
      warnings.push_back(file + " is not valid for " + pattern.to_text() + ": clients will reject it.");
  }
  return {boost::system::in_place_value, "certificate valid until " + date_of(X509_get0_notAfter(chain[0].get()))};
}

constexpr const char* kSignatures =
    "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:RSA-PSS+SHA256:RSA-PSS+SHA384:RSA-PSS+SHA512:"
    "RSA+SHA256:RSA+SHA384:RSA+SHA512";

// Whether it fits the certificate is known only when it is used.
config::TextResult<void> use_held_key(Entry& entry, const X509* certificate, const modules::ServerFile& key) {
  EVP_PKEY* const public_key = X509_get0_pubkey(certificate);
  if (!public_key || (!EVP_PKEY_is_a(public_key, "RSA") && !EVP_PKEY_is_a(public_key, "EC")))
    return config::TextError{key.name +
                             ": a PKCS#11 token can sign only for certificates with an RSA or EC key."};
  // Those that every token with the key was tried with: a client that asked for another would make it fail.
  if (SSL_CTX_set1_sigalgs_list(entry.to_client.get(), kSignatures) != 1) throw std::bad_alloc();
  key.held->belongs_to(public_key);
  entry.held = key.held;
  return {};
}

// The operator's authority, which makes a certificate for each server.
config::TextResult<std::string> use_mint(Entry& entry, std::vector<Certificate> chain, Key key, const std::string& file,
                                         std::vector<std::string>& warnings) {
  // The leaves' key is here: handshakes wait for no device.
  entry.mint_held = std::exchange(entry.held, nullptr);
  auto mint = Mint::make(std::move(chain), std::move(key), file, entry.names, entry.mint_held);
  if (!mint) return mint.error();
  entry.mint = *std::move(mint);
  if (SSL_CTX_use_PrivateKey(entry.to_client.get(), entry.mint->key()) != 1) throw std::bad_alloc();
  // Clients have the root certificate.
  std::span<const Certificate> known = entry.mint->chain();
  while (!known.empty() && X509_self_signed(known.back().get(), 0) == 1) known = known.first(known.size() - 1);
  add_chain(entry.to_client.get(), known);
  for (std::string& warning : entry.mint->warnings(file)) warnings.push_back(std::move(warning));
  return {boost::system::in_place_value, "certificates minted by a CA that is valid until " +
                                             date_of(X509_get0_notAfter(entry.mint->chain()[0].get()))};
}

// `number`: its place in the file, from 1 on.
config::TextResult<Entry> read_entry(const modules::ServerFiles& server, std::size_t number, AllAuthorities& all_authorities,
                                     std::vector<std::string>& lines, std::vector<std::string>& warnings) {
  const auto* certificate = file_of(server, "certificate");
  const auto* key = file_of(server, "key");
  const auto* authorities = file_of(server, "ca");
  if (!certificate)
    return config::TextError{"[[tls_server]] for " + server.name + " needs the key certificate."};

  auto chain = read_certificates(certificate->content);
  if (chain.empty())
    return config::TextError{certificate->name + ": it contains no certificate in PEM format."};
  Key secret = key->held ? nullptr : read_key(key->content);
  if (!secret && !key->held)
    return config::TextError{key->name + ": it contains no private key in PEM format without a passphrase."};
  X509_STORE* const trusted = all_authorities.with(authorities);
  if (!trusted) return config::TextError{authorities->name + ": it contains no certificate in PEM format."};
  if (secret && X509_check_private_key(chain[0].get(), secret.get()) != 1) {
    ERR_clear_error();
    return config::TextError{key->name + ": it is not the key of " + certificate->name + '.'};
  }

  Entry entry{.addresses = server.addresses,
              .clients = server.clients,
              .names = server.names,
              .is_private = std::ranges::find(server.off, "dedup") != server.off.end(),
              .to_client = context_to_client(),
              .to_server = context_to_server(trusted),
              .mint = nullptr,
              .held = nullptr,
              .mint_held = nullptr,
              .label = {},
              .table = "[[tls_server]] " + std::to_string(number),
              .stamp = stamp_of(server)};
  hand_out_sessions(entry.to_client.get(), kSessions);  // libssl uses this context, or the initial one
  for (const config::NamePattern& pattern : server.names) (entry.label += entry.label.empty() ? "" : ", ") += pattern.to_text();
  if (key->held)
    if (const auto used = use_held_key(entry, chain[0].get(), *key); !used) return used.error();
  const auto use = is_minted(server) ? use_mint : use_certificate;
  const auto shown = use(entry, std::move(chain), std::move(secret), certificate->name, warnings);
  if (!shown) return shown.error();
  lines.push_back("TLS of " + entry.label + " at " + server.name + ": " + *shown +
                  (key->held ? ", key in " + key->name : "") +
                  (entry.is_private ? ", not deduplicated" : ""));
  return entry;
}

}  // namespace

std::string plain_name(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > 253) return {};
  std::string plain;
  for (const char c : name) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool fits = (small >= 'a' && small <= 'z') || (small >= '0' && small <= '9') || small == '-' ||
                      small == '_' || (small == '.' && !plain.empty() && plain.back() != '.');
    if (!fits) return {};
    plain += small;
  }
  return plain;
}

config::TextResult<std::shared_ptr<const modules::Secrets>> Policy::read(std::span<const modules::ServerFiles> servers) {
  auto policy = std::make_shared<Policy>();
  AllAuthorities authorities;
  for (const modules::ServerFiles& server : servers) {
    auto entry = read_entry(server, policy->entries_.size() + 1, authorities, policy->lines_, policy->warnings_);
    if (!entry) return entry.error();
    policy->entries_.push_back(*std::move(entry));
  }
  return std::shared_ptr<const modules::Secrets>(std::move(policy));
}

std::vector<std::string> Policy::try_out() const {
  std::vector<std::string> failures;
  for (const Entry& entry : entries_)
    if (modules::HeldKey* const held = entry.device())
      if (const std::string why = held->try_out(); !why.empty())
        failures.push_back("TLS of " + entry.label + ": the key in [[tls_server]] is not available: " + why +
                           ". Connections pass encrypted until it is.");
  return failures;
}

void Policy::begin() const {
  for (const Entry& entry : entries_)
    if (modules::HeldKey* const held = entry.device()) held->begin();
}

bool Policy::lists(const modules::Address& server) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return contains(entry.addresses, server); });
}

const Entry* Policy::find(const modules::Address& server, std::string_view name, const modules::Address& client) const {
  for (const Entry& entry : entries_)
    if (contains(entry.addresses, server) && (entry.clients.empty() || contains(entry.clients, client)) &&
        std::ranges::any_of(entry.names, [&](const auto& pattern) { return config::matches(pattern, name); }))
      return &entry;
  return nullptr;
}

}  // namespace longhaul::tls
