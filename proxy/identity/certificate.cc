// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/certificate.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <stdexcept>
#include <string_view>

namespace longhaul::identity {
namespace {

constexpr long kDay = 24 * 60 * 60;
constexpr long kValidDays = 20 * 365 + 5;

[[noreturn]] void fail_to(std::string_view doing) {
  char reason[256];
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  ERR_clear_error();
  throw std::runtime_error("OpenSSL failed to " + std::string(doing) + ": " + reason + ".");
}

void add_extension(X509* certificate, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  if (!added) fail_to("write the certificate's extensions");
}

// 127 random bits, positive (RFC 5280 section 4.1.2.2 allows 20 octets).
void set_random_serial(X509* certificate) {
  BIGNUM* number = BN_new();
  const bool set = number != nullptr && BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                   BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  if (!set) fail_to("generate a serial number");
}

CertificatePtr blank(EVP_PKEY* key) {
  CertificatePtr certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1)
    fail_to("create a certificate");
  add_extension(certificate.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(certificate.get(), NID_key_usage, "critical,digitalSignature");
  return certificate;
}

void sign(X509* certificate, EVP_PKEY* key) {
  // Ed25519 has its own digest (RFC 8410).
  const EVP_MD* digest = EVP_PKEY_is_a(key, "ED25519") == 1 ? nullptr : EVP_sha256();
  if (X509_sign(certificate, key, digest) == 0) fail_to("sign the certificate");
}

}  // namespace

CertificatePtr named_certificate(EVP_PKEY* key, const std::string& name) {
  CertificatePtr certificate = blank(key);
  X509* c = certificate.get();
  set_random_serial(c);
  X509_NAME* subject = X509_get_subject_name(c);
  if (X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) != 1 ||
      X509_set_issuer_name(c, subject) != 1)
    fail_to("set the name of the certificate");
  // Valid from one day earlier, because the clocks of two sites differ.
  if (X509_gmtime_adj(X509_getm_notBefore(c), -kDay) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(c), kValidDays, 0, nullptr) == nullptr)
    fail_to("set the validity of the certificate");
  sign(c, key);
  return certificate;
}

CertificatePtr nameless_certificate(EVP_PKEY* key) {
  CertificatePtr certificate = blank(key);
  X509* c = certificate.get();
  // RFC 5280, section 4.1.2.5: this date means that the certificate never expires.
  if (ASN1_INTEGER_set(X509_get_serialNumber(c), 1) != 1 ||
      ASN1_TIME_set_string(X509_getm_notBefore(c), "20000101000000Z") != 1 ||
      ASN1_TIME_set_string(X509_getm_notAfter(c), "99991231235959Z") != 1)
    fail_to("fill in the certificate");
  sign(c, key);
  return certificate;
}

}  // namespace longhaul::identity
