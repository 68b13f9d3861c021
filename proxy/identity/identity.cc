// SPDX-License-Identifier: Apache-2.0
// Reads PEM files through OpenSSL; each error message has a remedy.
#include "proxy/identity/identity.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

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

// A daemon cannot ask for a passphrase: such a key is refused instead of waiting at a terminal.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

// Why peers would not accept the key: the handshake allows two signature algorithms (link/io/tls_engine.cc).
std::string unusable_kind(const EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "ED25519") == 1) return {};
  const char* name = EVP_PKEY_get0_type_name(key);
  const std::string kind = name ? name : "an unknown algorithm";
  char group[80] = "";
  if (EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) != 1) return ERR_clear_error(), kind;
  return std::string_view(group) == "prime256v1" ? std::string() : kind + " " + group;
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
  if (!identity.certificate) fail(files.certificate, "this is not a certificate in PEM format.");

  const FilePtr key_file = open(files.private_key, "private key");
  std::setvbuf(key_file.get(), nullptr, _IONBF, 0);  // leaves no copy of the key in a buffer
  bool asked = false;
  identity.private_key.reset(PEM_read_PrivateKey(key_file.get(), nullptr, no_passphrase, &asked));
  if (!identity.private_key)
    fail(files.private_key, asked ? "the private key has a passphrase, which the daemon cannot ask for; use a key without one."
                                  : "this is not a private key in PEM format.");
  struct stat about {};
  if (fstat(fileno(key_file.get()), &about) != 0 || (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    fail(files.private_key,
         "other users can read or change this private key; create a new one with `longhaul "
         "keygen`, or, if no other user can have read it, run chmod 600 on it.");
  if (X509_check_private_key(identity.certificate.get(), identity.private_key.get()) != 1)
    fail(files.private_key,
         "the private key does not match the certificate " + files.certificate.string() + ".");

  if (const std::string kind = unusable_kind(identity.private_key.get()); !kind.empty())
    fail(files.private_key, "this is a key for " + kind +
                                ", but the link supports only EC P-256 and Ed25519; `longhaul keygen NAME` creates one.");
  auto fingerprint = fingerprint_of(identity.certificate.get());
  if (!fingerprint) fail(files.certificate, "the certificate's key cannot be encoded.");
  identity.fingerprint = *std::move(fingerprint);

  // Peers pin the key, so the link still works; the warning prevents confusion about the date.
  if (X509_cmp_current_time(X509_get0_notAfter(identity.certificate.get())) < 0)
    identity.warnings.push_back("The certificate " + files.certificate.string() +
                                " has expired; the link works nevertheless, because peers check only its key.");
  return identity;
}

Identity load(const config::Config& config) {
  Identity identity = load(config.identity);
  for (const config::Peer& peer : config.peers)
    if (peer.has_key(identity.fingerprint))
      fail(config.file,
           "the peer \"" + peer.name +
               "\" has the fingerprint of this site's own key; each site needs a key of its own.");
  identity.preshared = load_preshared_keys(config);
  identity.servers = load_server_secrets(config);
  for (const auto& [module, secrets] : identity.servers)
    for (std::string& warning : secrets->warnings()) identity.warnings.push_back(std::move(warning));
  return identity;
}

}  // namespace longhaul::identity
