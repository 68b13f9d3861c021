// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/identity.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "proxy/config/read.h"
#include "proxy/identity/keygen.h"
#include "proxy/temporary_folder.h"

using namespace longhaul;
using identity::keygen;

namespace {

config::Identity files(const identity::Made& made) { return {made.certificate, made.private_key}; }

std::string load_sentence(const config::Identity& wanted) {
  try {
    (void)identity::load(wanted);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

mode_t mode(const std::filesystem::path& file) {
  struct stat status {};
  REQUIRE(stat(file.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a created identity loads, with the fingerprint that was printed") {
  const TemporaryFolder folder;
  const mode_t before = umask(0);
  const auto made = keygen("branch", folder.path());
  umask(before);
  CHECK(mode(made.private_key) == 0600);
  CHECK(made.fingerprint.size() == 7 + 64);
  const auto loaded = identity::load(files(made));
  CHECK(loaded.fingerprint == made.fingerprint);
  CHECK(loaded.warnings.empty());
  CHECK(X509_check_host(loaded.certificate.get(), "branch", 0, 0, nullptr) == 1);  // CN = name
  int days = 0, seconds = 0;
  REQUIRE(ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(loaded.certificate.get())) == 1);
  CHECK(days >= 10 * 365);
  CHECK(X509_verify(loaded.certificate.get(), X509_get0_pubkey(loaded.certificate.get())) == 1);
}

TEST_CASE("the fingerprint equals what the openssl program computes from the public key") {
  // openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum, for this certificate.
  constexpr std::string_view kCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBdjCCAR2gAwIBAgIURvBeQ+H6CZs7CCqLBDwxcYVFiDswCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGZ29sZGVuMB4XDTI2MTEyMDIzNDgxNFoXDTM2MTExNzIzNDgx
NFowETEPMA0GA1UEAwwGZ29sZGVuMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
3TomDDDkDHVnsxVfV3zuVO1+1IIVzz+e71y6sH0h06S7XbYFBosAqktZE2gcdw4K
LgbZ9MZHxFShJpenlYiCz6NTMFEwHQYDVR0OBBYEFBF79lY6nWAVyu8eyqfnb48X
elQBMB8GA1UdIwQYMBaAFBF79lY6nWAVyu8eyqfnb48XelQBMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgOPnsmYGjurFlrsShDk0QlNBfdQtof3RJ
PDO0FcfMGIcCIGozAcvlcDNf6D3Oypf6+UHnkcxuHSCBZMxMmR46x9Qm
-----END CERTIFICATE-----
)";
  constexpr std::string_view kFingerprint =
      "sha256:71d8df5707542f5882de5eb22a18dab276082b2e973de81e3c62cd7e1f807db8";
  BIO* memory = BIO_new_mem_buf(kCertificate.data(), static_cast<int>(kCertificate.size()));
  const identity::CertificatePtr certificate(PEM_read_bio_X509(memory, nullptr, nullptr, nullptr));
  BIO_free(memory);
  REQUIRE(certificate);
  CHECK(identity::fingerprint_of(certificate.get()).value() == kFingerprint);
}

TEST_CASE("a second identity never overwrites the first, and leaves no partial files") {
  const TemporaryFolder folder;
  const auto made = keygen("branch", folder.path());
  const std::string key = folder.read("branch.key");
  CHECK_THROWS_WITH(
      keygen("branch", folder.path()),
      made.private_key.string() + " already exists and is not overwritten; remove it to create another.");
  CHECK(folder.read("branch.key") == key);
  // Only the certificate is in the way: the new key must not stay behind.
  std::filesystem::remove(made.private_key);
  CHECK_THROWS_AS(keygen("branch", folder.path()), identity::KeygenError);
  CHECK_FALSE(std::filesystem::exists(made.private_key));
  CHECK_THROWS_AS(keygen("branch", folder.path() / "none"), identity::KeygenError);
}

TEST_CASE("a site name that looks like a path or an option is refused") {
  const TemporaryFolder folder;
  for (const std::string& name : std::vector<std::string>{"", "../a", "a/b", "-a", ".a", "a b", std::string(64, 'a')})
    CHECK_THROWS_AS(keygen(name, folder.path()), identity::KeygenError);
}

TEST_CASE("an unusable identity is refused with the file's name") {
  const TemporaryFolder folder;
  const auto a = keygen("a", folder.path()), b = keygen("b", folder.path());
  const std::string at = folder.path().string() + "/";
  CHECK(load_sentence({a.certificate, b.private_key}) ==
        at + "b.key: the private key does not match the certificate " + at + "a.crt.");
  CHECK(load_sentence({a.private_key, a.private_key}) == at + "a.key: this is not a certificate in PEM format.");
  CHECK(load_sentence({a.certificate, a.certificate}) == at + "a.crt: this is not a private key in PEM format.");
  CHECK(load_sentence({at + "none", a.private_key}) ==
        at + "none: the certificate cannot be read: No such file or directory.");
}

TEST_CASE("a key that others may read or change is refused") {
  const TemporaryFolder folder;
  const auto made = keygen("a", folder.path());
  for (const mode_t mode : {0640u, 0604u, 0620u, 0610u, 0644u}) {
    REQUIRE(chmod(made.private_key.c_str(), mode) == 0);
    CHECK_THAT(load_sentence(files(made)),
               Catch::StartsWith(made.private_key.string() + ": other users can read") && Catch::Contains("chmod 600"));
  }
  for (const mode_t mode : {0600u, 0400u}) {
    REQUIRE(chmod(made.private_key.c_str(), mode) == 0);
    CHECK(identity::load(files(made)).warnings.empty());
  }
}

TEST_CASE("a key with a passphrase is refused without a prompt") {
  const TemporaryFolder folder;
  const auto made = keygen("a", folder.path());
  const auto loaded = identity::load(files(made));
  BIO* memory = BIO_new_file((folder.path() / "locked.key").c_str(), "w");
  char passphrase[] = "secret";
  REQUIRE(PEM_write_bio_PKCS8PrivateKey(memory, loaded.private_key.get(), EVP_aes_128_cbc(), passphrase, 6,
                                        nullptr, nullptr) == 1);
  BIO_free(memory);
  CHECK(load_sentence({made.certificate, folder.path() / "locked.key"}) ==
        (folder.path() / "locked.key").string() +
            ": the private key has a passphrase, which the daemon cannot ask for; use a key without one.");
}

TEST_CASE("two created identities complete a TLS 1.3 handshake, and each sees the other's fingerprint") {
  const TemporaryFolder folder;
  const auto a = keygen("a", folder.path()), b = keygen("b", folder.path());
  const auto context = [](const identity::Made& made, const SSL_METHOD* method) {
    const auto loaded = identity::load(files(made));
    SSL_CTX* made_context = SSL_CTX_new(method);
    SSL_CTX_set_min_proto_version(made_context, TLS1_3_VERSION);
    REQUIRE(SSL_CTX_use_certificate(made_context, loaded.certificate.get()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(made_context, loaded.private_key.get()) == 1);
    SSL_CTX_set_verify(made_context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       [](int, X509_STORE_CTX*) { return 1; });
    return made_context;
  };
  SSL_CTX* client_context = context(a, TLS_client_method());
  SSL_CTX* server_context = context(b, TLS_server_method());
  SSL *client = SSL_new(client_context), *server = SSL_new(server_context);
  BIO *client_end = nullptr, *server_end = nullptr;
  REQUIRE(BIO_new_bio_pair(&client_end, 0, &server_end, 0) == 1);
  SSL_set_bio(client, client_end, client_end);
  SSL_set_bio(server, server_end, server_end);
  SSL_set_connect_state(client);
  SSL_set_accept_state(server);
  for (int i = 0; i < 10 && !(SSL_is_init_finished(client) && SSL_is_init_finished(server)); ++i) {
    SSL_do_handshake(client);
    SSL_do_handshake(server);
  }
  REQUIRE(SSL_is_init_finished(server));
  CHECK(std::string(SSL_get_version(server)) == "TLSv1.3");
  CHECK(identity::fingerprint_of(SSL_get0_peer_certificate(server)).value() == a.fingerprint);
  CHECK(identity::fingerprint_of(SSL_get0_peer_certificate(client)).value() == b.fingerprint);
  SSL_free(client);
  SSL_free(server);
  SSL_CTX_free(client_context);
  SSL_CTX_free(server_context);
}
