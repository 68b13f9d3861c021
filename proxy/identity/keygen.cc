// SPDX-License-Identifier: Apache-2.0
// Key and certificate through OpenSSL, files through O_EXCL; leaves reading them back to identity.cc.
#include "proxy/identity/keygen.h"

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "proxy/identity/identity.h"

namespace longhaul::identity {
namespace {

constexpr long kDay = 24 * 60 * 60;
constexpr long kValidDays = 20 * 365 + 5;

[[noreturn]] void fail(const std::string& sentence) { throw KeygenError(sentence); }

[[noreturn]] void fail_in_openssl(std::string_view doing) {
  char reason[256];
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  ERR_clear_error();
  fail("OpenSSL failed to " + std::string(doing) + ": " + reason + ".");
}

void check_name(const std::string& name) {
  bool good = !name.empty() && name.size() <= 63 && name.front() != '.' && name.front() != '-';
  for (char c : name)
    good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                    c == '_' || c == '.');
  if (!good) fail("The name must be 1 to 63 letters, digits, dots, dashes or underscores.");
}

void add_extension(X509* certificate, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  if (!added) fail_in_openssl("write the certificate's extensions");
}

// 127 random bits, positive (RFC 5280 section 4.1.2.2 allows 20 octets).
void set_serial(X509* certificate) {
  BIGNUM* number = BN_new();
  const bool set = number != nullptr && BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                   BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  if (!set) fail_in_openssl("draw a serial number");
}

CertificatePtr self_signed(const std::string& name, EVP_PKEY* key) {
  CertificatePtr certificate(X509_new());
  X509* c = certificate.get();
  if (c == nullptr || X509_set_version(c, X509_VERSION_3) != 1) fail_in_openssl("make a certificate");
  set_serial(c);
  X509_NAME* subject = X509_get_subject_name(c);
  if (X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) != 1 ||
      X509_set_issuer_name(c, subject) != 1)
    fail_in_openssl("name the certificate");
  // A day back, since the clocks of two sites differ.
  if (X509_gmtime_adj(X509_getm_notBefore(c), -kDay) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(c), kValidDays, 0, nullptr) == nullptr ||
      X509_set_pubkey(c, key) != 1)
    fail_in_openssl("fill in the certificate");
  add_extension(c, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(c, NID_key_usage, "critical,digitalSignature");
  if (X509_sign(c, key, EVP_sha256()) == 0) fail_in_openssl("sign the certificate");
  return certificate;
}

std::string pem(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(memory);
  return text;
}

std::string pem_of(EVP_PKEY* key) {
  BIO* memory = BIO_new(BIO_s_mem());
  if (memory == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(memory, key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    fail_in_openssl("encode the key");
  return pem(memory);
}

std::string pem_of(X509* certificate) {
  BIO* memory = BIO_new(BIO_s_mem());
  if (memory == nullptr || PEM_write_bio_X509(memory, certificate) != 1)
    fail_in_openssl("encode the certificate");
  return pem(memory);
}

// Takes back the files it made unless told to keep them.
class NewFiles {
 public:
  ~NewFiles() {
    for (const auto& file : made_) ::unlink(file.c_str());
  }
  void write(const std::filesystem::path& file, mode_t mode, const std::string& text) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0) {
      if (errno == EEXIST)
        fail(file.string() + " is already there and is not overwritten; remove it to make another.");
      fail(file.string() + " cannot be made: " + std::strerror(errno) + ".");
    }
    made_.push_back(file);
    const bool written = ::fchmod(descriptor, mode) == 0 &&  // whatever the umask is
                         ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                         ::fsync(descriptor) == 0;
    const int error = errno;
    ::close(descriptor);
    if (!written) fail(file.string() + " cannot be written: " + std::strerror(error) + ".");
  }
  void keep() { made_.clear(); }

 private:
  std::vector<std::filesystem::path> made_;
};

}  // namespace

Made keygen(const std::string& name, const std::filesystem::path& folder) {
  check_name(name);
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) fail_in_openssl("make a key");
  const CertificatePtr certificate = self_signed(name, key.get());
  auto fingerprint = fingerprint_of(certificate.get());
  if (!fingerprint) fail_in_openssl("encode the public key");
  Made made{folder / (name + ".crt"), folder / (name + ".key"), *std::move(fingerprint)};
  NewFiles files;
  files.write(made.private_key, 0600, pem_of(key.get()));
  files.write(made.certificate, 0644, pem_of(certificate.get()));
  files.keep();
  return made;
}

}  // namespace longhaul::identity
