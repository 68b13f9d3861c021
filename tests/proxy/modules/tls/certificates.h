// SPDX-License-Identifier: Apache-2.0
// Certificates of a test's own authority, as PEM, and what a table [[tls_server]] reads of them.
#pragma once
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "proxy/modules/tls/policy.h"

namespace longhaul::tls {

struct Issued {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;

  std::string certificate_pem() const { return pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate.get()); }); }
  std::string key_pem() const {
    return pem([&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }

 private:
  template <class Write>
  static std::string pem(Write write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
    write(bio.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }
};

struct Profile {
  std::vector<std::string> names;         // of a server, in subjectAltName; empty: the subject's
  bool has_alternative_names = true;      // otherwise the subject alone
  bool is_authority = false;              // also with an issuer
  std::string constraints;                // of an authority: nameConstraints, as "permitted;DNS:corp"
  std::string purposes;                   // extendedKeyUsage
  long begins = -3600, ends = 24 * 3600;  // seconds from now
  const char* key = "EC";                 // or RSA, ED25519
};

// Without an issuer: an authority.
inline Issued issue(const std::string& name, const Issued* issuer = nullptr, const Profile& profile = {}) {
  const std::string kind = profile.key;
  EVP_PKEY* const key = kind == "EC"    ? EVP_EC_gen("P-256")
                        : kind == "RSA" ? EVP_RSA_gen(2048)
                                        : EVP_PKEY_Q_keygen(nullptr, nullptr, profile.key);
  Issued made{{X509_new(), X509_free}, {key, EVP_PKEY_free}};
  X509* const out = made.certificate.get();
  X509_set_version(out, 2);
  static long serial = 0;
  ASN1_INTEGER_set(X509_get_serialNumber(out), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(out), profile.begins);
  X509_gmtime_adj(X509_getm_notAfter(out), profile.ends);
  X509_set_pubkey(out, made.key.get());
  X509_NAME* const subject = X509_get_subject_name(out);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(out, issuer ? X509_get_subject_name(issuer->certificate.get()) : subject);
  X509V3_CTX about{};
  X509V3_set_ctx(&about, out, out, nullptr, nullptr, 0);
  const auto add = [&](int which, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &about, which, value.c_str());
    if (!extension) throw std::runtime_error("no such extension");
    X509_add_ext(out, extension, -1);
    X509_EXTENSION_free(extension);
  };
  if (!issuer || profile.is_authority) {
    add(NID_basic_constraints, "critical,CA:TRUE");
    add(NID_subject_key_identifier, "hash");
    if (!profile.constraints.empty()) add(NID_name_constraints, "critical," + profile.constraints);
  } else if (profile.has_alternative_names) {
    std::string names;
    for (const std::string& each : profile.names.empty() ? std::vector{name} : profile.names)
      (names += names.empty() ? "DNS:" : ",DNS:") += each;
    add(NID_subject_alt_name, names);
  }
  if (!profile.purposes.empty()) add(NID_ext_key_usage, profile.purposes);
  EVP_PKEY* const signer = (issuer ? *issuer : made).key.get();
  X509_sign(out, signer, EVP_PKEY_is_a(signer, "ED25519") ? nullptr : EVP_sha256());
  return made;
}

inline modules::ServerFile file(const std::string& key, const std::string& content) {
  SecretBytes bytes(content.size());
  std::copy_n(reinterpret_cast<const std::byte*>(content.data()), content.size(), bytes.data());
  return {.key = key, .name = key + ".pem", .content = std::move(bytes)};
}

// A table for every address, with this certificate.
inline modules::ServerFiles table(const std::string& name, const Issued& shown, const Issued& authority) {
  modules::ServerFiles server{.name = "any"};
  server.addresses.push_back({.address = {}, .prefix_length = 0});
  const bool below = name.starts_with("*.");
  server.names.push_back({.name = below ? name.substr(2) : name, .subdomains = below});
  server.files.push_back(file("certificate", shown.certificate_pem()));
  server.files.push_back(file("key", shown.key_pem()));
  server.files.push_back(file("ca", authority.certificate_pem()));
  return server;
}

// The same with mode = "mint": certificates are made by `mint`, and the server is verified by `authority`.
inline modules::ServerFiles mint_table(const std::string& name, const Issued& mint, const Issued& authority) {
  modules::ServerFiles server = table(name, mint, authority);
  server.chosen.emplace_back("mode", "mint");
  return server;
}

}  // namespace longhaul::tls
