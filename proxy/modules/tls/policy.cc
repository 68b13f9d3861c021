// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/policy.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <map>

#include "proxy/modules/tls/leg.h"

namespace longhaul::tls {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;

std::unique_ptr<BIO, FreeBio> bio_of(Bytes text) {
  std::unique_ptr<BIO, FreeBio> bio(BIO_new_mem_buf(text.empty() ? "" : static_cast<const void*>(text.data()), static_cast<int>(text.size())));
  if (!bio) throw std::bad_alloc();
  return bio;
}

std::vector<Certificate> read_certificates(Bytes text) {
  std::vector<Certificate> all;
  const auto bio = bio_of(text);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) all.emplace_back(certificate);
  ERR_clear_error();  // the end of the file is an error to it
  return all;
}

// No prompt: a key with a passphrase is an error.
int no_passphrase(char*, int, int, void*) { return 0; }

const modules::ServerFile* file_of(const modules::ServerFiles& server, std::string_view key) {
  const auto found = std::ranges::find(server.files, key, &modules::ServerFile::key);
  return found == server.files.end() ? nullptr : &*found;
}

// Not of the key: a certificate has one key only.
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
  for (const auto& pattern : server.names) {
    const std::string name = (pattern.subdomains ? "*." : "") + pattern.name;
    add(std::as_bytes(std::span(name)));
  }
  for (const std::string& off : server.off) add(std::as_bytes(std::span(off)));
  for (const char* key : {"certificate", "ca"})
    if (const auto* file = file_of(server, key)) add(std::as_bytes(std::span(file->key))), add(file->content);
  std::string digest(32, '\0');
  if (EVP_Digest(all.data(), all.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  return digest;
}

std::string date_of(const ASN1_TIME* time) {
  tm when{};
  if (ASN1_TIME_to_tm(time, &when) != 1) return "an unknown date";
  const auto two = [](int value) { return std::string(value < 10 ? "0" : "") + std::to_string(value); };
  return std::to_string(when.tm_year + 1900) + '-' + two(when.tm_mon + 1) + '-' + two(when.tm_mday);
}

bool contains(const std::vector<modules::AddressRange>& ranges, const modules::Address& address) {
  return std::ranges::any_of(ranges, [&](const auto& range) { return range.contains(address); });
}

bool has_name(const config::NamePattern& pattern, std::string_view name) {
  if (!pattern.subdomains) return name == pattern.name;
  return name.size() > pattern.name.size() + 1 && name.ends_with(pattern.name) &&
         name[name.size() - pattern.name.size() - 1] == '.';
}

// The system's authorities take OpenSSL some 10 ms to read, on the daemon's loop: read once for all tables that add the
// same ones.
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

config::TextResult<Entry> read_entry(const modules::ServerFiles& server, AllAuthorities& all_authorities,
                                     std::vector<std::string>& lines, std::vector<std::string>& warnings) {
  const auto* certificate = file_of(server, "certificate");
  const auto* key = file_of(server, "key");
  const auto* authorities = file_of(server, "ca");
  if (!certificate) return config::TextError{"[[tls_server]] for " + server.name + " needs certificate."};

  const auto chain = read_certificates(certificate->content);
  if (chain.empty()) return config::TextError{certificate->name + ": it has no certificate in PEM form."};
  const std::unique_ptr<EVP_PKEY, FreeKey> secret(
      PEM_read_bio_PrivateKey(bio_of(key->content).get(), nullptr, no_passphrase, nullptr));
  if (!secret) return config::TextError{key->name + ": it has no private key in PEM form without a passphrase."};
  X509_STORE* const trusted = all_authorities.with(authorities);
  if (!trusted) return config::TextError{authorities->name + ": it has no certificate in PEM form."};

  Entry entry{.addresses = server.addresses, .clients = server.clients, .names = server.names,
              .is_private = std::ranges::find(server.off, "dedup") != server.off.end(),
              .to_client = context_to_client(), .to_server = context_to_server(trusted), .label = {}, .stamp = stamp_of(server)};
  SSL_CTX* const own = entry.to_client.get();
  hand_out_sessions(own, kSessions);  // libssl asks this context, or the one that it began with
  if (SSL_CTX_use_certificate(own, chain[0].get()) != 1)
    return config::TextError{certificate->name + ": OpenSSL refuses it: " + last_error() + '.'};
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(own, chain[i].get()) != 1) throw std::bad_alloc();
  if (SSL_CTX_use_PrivateKey(own, secret.get()) != 1 || SSL_CTX_check_private_key(own) != 1) {
    ERR_clear_error();
    return config::TextError{key->name + ": it is not the key of " + certificate->name + '.'};
  }

  for (const config::NamePattern& pattern : server.names) {
    (entry.label += entry.label.empty() ? "" : ", ") += (pattern.subdomains ? "*." : "") + pattern.name;
    const std::string probe = (pattern.subdomains ? "name." : "") + pattern.name;
    if (X509_check_host(chain[0].get(), probe.data(), probe.size(), 0, nullptr) != 1)
      warnings.push_back(certificate->name + " is not valid for " + (pattern.subdomains ? "*." : "") + pattern.name +
                         ": clients will refuse it.");
  }
  lines.push_back("TLS of " + entry.label + " at " + server.name + ": certificate valid until " +
                  date_of(X509_get0_notAfter(chain[0].get())) + (entry.is_private ? ", not deduplicated" : ""));
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
    auto entry = read_entry(server, authorities, policy->lines_, policy->warnings_);
    if (!entry) return entry.error();
    policy->entries_.push_back(*std::move(entry));
  }
  return std::shared_ptr<const modules::Secrets>(std::move(policy));
}

bool Policy::lists(const modules::Address& server) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return contains(entry.addresses, server); });
}

const Entry* Policy::find(const modules::Address& server, std::string_view name, const modules::Address& client) const {
  for (const Entry& entry : entries_)
    if (contains(entry.addresses, server) && (entry.clients.empty() || contains(entry.clients, client)) &&
        std::ranges::any_of(entry.names, [&](const auto& pattern) { return has_name(pattern, name); }))
      return &entry;
  return nullptr;
}

}  // namespace longhaul::tls
