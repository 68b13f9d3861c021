// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <new>

namespace longhaul::tls {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

std::unique_ptr<BIO, FreeBio> bio_of(Bytes text) {
  std::unique_ptr<BIO, FreeBio> bio(BIO_new_mem_buf(text.empty() ? "" : static_cast<const void*>(text.data()), static_cast<int>(text.size())));
  if (!bio) throw std::bad_alloc();
  return bio;
}

// No prompt: a key with a passphrase is an error.
int no_passphrase(char*, int, int, void*) { return 0; }

}  // namespace

Certificate new_reference(X509* certificate) {
  if (X509_up_ref(certificate) != 1) throw std::bad_alloc();
  return Certificate(certificate);
}

std::vector<Certificate> read_certificates(Bytes text) {
  std::vector<Certificate> all;
  const auto bio = bio_of(text);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) all.emplace_back(certificate);
  ERR_clear_error();  // OpenSSL reports the end of the file as an error
  return all;
}

Key read_key(Bytes text) {
  Key key(PEM_read_bio_PrivateKey(bio_of(text).get(), nullptr, no_passphrase, nullptr));
  if (!key) ERR_clear_error();
  return key;
}

std::string date_of(const ASN1_TIME* time) {
  tm when{};
  if (ASN1_TIME_to_tm(time, &when) != 1) return "an unknown date";
  const auto two = [](int value) { return std::string(value < 10 ? "0" : "") + std::to_string(value); };
  return std::to_string(when.tm_year + 1900) + '-' + two(when.tm_mon + 1) + '-' + two(when.tm_mday);
}

}  // namespace longhaul::tls
