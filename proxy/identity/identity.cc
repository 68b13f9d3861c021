// SPDX-License-Identifier: Apache-2.0
// PEM files through OpenSSL, and what a person can do about each way they can be wrong.
#include "proxy/identity/identity.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "proxy/config/read.h"

namespace longhaul::identity {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, Close>;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& sentence) {
  ERR_clear_error();
  throw config::ConfigError(file.string() + ": " + sentence);
}

FilePtr open(const std::filesystem::path& file, std::string_view what) {
  FilePtr opened(std::fopen(file.c_str(), "re"));
  if (!opened) fail(file, "the " + std::string(what) + " cannot be read: " + std::strerror(errno) + ".");
  return opened;
}

// A daemon has nobody to ask: a key with a passphrase is refused instead of waiting at a terminal.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace

Result<std::string> fingerprint_of(X509* certificate) {
  unsigned char* der = nullptr;
  const int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (length <= 0) {
    ERR_clear_error();
    return make_error_code(boost::system::errc::bad_message);
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(der, static_cast<std::size_t>(length), digest.data());
  OPENSSL_free(der);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "sha256:";
  for (unsigned char byte : digest) (text += kHex[byte >> 4]) += kHex[byte & 15];
  return text;
}

Identity load(const config::Identity& files) {
  Identity identity;
  const FilePtr certificate_file = open(files.certificate, "certificate");
  identity.certificate.reset(PEM_read_X509(certificate_file.get(), nullptr, nullptr, nullptr));
  if (!identity.certificate) fail(files.certificate, "this is no certificate in PEM form.");

  const FilePtr key_file = open(files.private_key, "private key");
  bool asked = false;
  identity.private_key.reset(PEM_read_PrivateKey(key_file.get(), nullptr, no_passphrase, &asked));
  if (!identity.private_key)
    fail(files.private_key, asked ? "the private key has a passphrase, and a daemon has nobody to ask for it."
                                  : "this is no private key in PEM form.");
  if (X509_check_private_key(identity.certificate.get(), identity.private_key.get()) != 1)
    fail(files.private_key,
         "the private key is not that of the certificate " + files.certificate.string() + ".");

  auto fingerprint = fingerprint_of(identity.certificate.get());
  if (!fingerprint) fail(files.certificate, "the certificate's key cannot be encoded.");
  identity.fingerprint = *std::move(fingerprint);

  struct stat status {};
  if (fstat(fileno(key_file.get()), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    identity.warnings.push_back("Others may use the private key " + files.private_key.string() +
                                ": chmod 600 it.");
  // Peers pin the key, so the link goes on; but a person who looks at dates should not be misled.
  if (X509_cmp_current_time(X509_get0_notAfter(identity.certificate.get())) < 0)
    identity.warnings.push_back("The certificate " + files.certificate.string() +
                                " is past its time; peers pin its key and do not mind.");
  return identity;
}

Identity load(const config::Config& config) {
  Identity identity = load(config.identity);
  for (const config::Peer& peer : config.peers)
    if (peer.fingerprint == identity.fingerprint)
      fail(config.file,
           "the peer \"" + peer.name +
               "\" has the fingerprint of this site's own key; each site needs a key of its own.");
  return identity;
}

}  // namespace longhaul::identity
