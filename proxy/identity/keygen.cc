// SPDX-License-Identifier: Apache-2.0
// Creates key and certificate with OpenSSL, and files with O_EXCL; identity.cc reads them.
#include "proxy/identity/keygen.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/identity/certificate.h"

namespace longhaul::identity {
namespace {

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

// Root creates the key, but the daemon reads it again at a reload, after it has dropped root's privileges.
void give_to_daemon(int file) {
  if (::geteuid() != 0) return;
  const std::string user = config::Process{}.user;
  if (const passwd* entry = ::getpwnam(user.c_str())) (void)!::fchown(file, entry->pw_uid, entry->pw_gid);
}

// Removes the files that it created, unless keep() is called.
class NewFiles {
 public:
  ~NewFiles() {
    for (const auto& file : made_) ::unlink(file.c_str());
  }
  enum class Owner { maker, daemon };
  void write(const std::filesystem::path& file, mode_t mode, Owner owner, const std::string& text) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0) {
      if (errno == EEXIST)
        fail(file.string() + " already exists and is not overwritten; remove it to create another.");
      fail(file.string() + " cannot be created: " + std::strerror(errno) + ".");
    }
    made_.push_back(file);
    if (owner == Owner::daemon) give_to_daemon(descriptor);
    const bool written = ::fchmod(descriptor, mode) == 0 &&  // independent of the umask
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
  if (!key) fail_in_openssl("create a key");
  const CertificatePtr certificate = named_certificate(key.get(), name);
  auto fingerprint = fingerprint_of(certificate.get());
  if (!fingerprint) fail_in_openssl("encode the public key");
  Made made{folder / (name + ".crt"), folder / (name + ".key"), *std::move(fingerprint)};
  NewFiles files;
  std::string secret = pem_of(key.get());
  files.write(made.private_key, 0600, NewFiles::Owner::daemon, secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  files.write(made.certificate, 0644, NewFiles::Owner::maker, pem_of(certificate.get()));
  files.keep();
  return made;
}

}  // namespace longhaul::identity
