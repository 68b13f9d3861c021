// SPDX-License-Identifier: Apache-2.0
// With SoftHSM, a PKCS#11 token in files (softhsm2). Skipped where it is not installed.
#include "proxy/identity/token_key.h"

#include <openssl/pem.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include "proxy/identity/token_method.h"

namespace longhaul::identity {
namespace {

namespace fs = std::filesystem;

const fs::path kModule = "/usr/lib/softhsm/libsofthsm2.so";

struct Folder {
  fs::path path = fs::temp_directory_path() / ("longhaul-token-" + std::to_string(::getpid()));
  Folder() {
    fs::create_directories(path / "tokens");
    configure("");
    ::setenv("SOFTHSM2_CONF", (path / "softhsm2.conf").c_str(), 1);
  }
  ~Folder() {
    (void)wait_for_token_threads(std::chrono::seconds(60));
    fs::remove_all(path);
  }
  // `more`: lines of SoftHSM's configuration, for what opens the library from now on.
  void configure(const std::string& more) const {
    std::ofstream(path / "softhsm2.conf")
        << "directories.tokendir = " << (path / "tokens").string() << "\nlog.level = ERROR\n"
        << more << '\n';
  }
  void run(const std::string& arguments) const {
    REQUIRE(std::system(("softhsm2-util " + arguments + " >" + (path / "said").string() + " 2>&1").c_str()) ==
            0);
  }
  void make_token(const std::string& label) const {
    run("--init-token --free --label " + label + " --pin 1234 --so-pin 5678");
  }
  void import(const std::string& token, EVP_PKEY* key, const std::string& label,
              const std::string& id) const {
    const fs::path file = path / "key.pem";
    std::FILE* const out = std::fopen(file.c_str(), "w");
    REQUIRE(PEM_write_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
    std::fclose(out);
    run("--import " + file.string() + " --token " + token + " --label " + label + " --id " + id +
        " --pin 1234");
  }
};

bool has_softhsm() {
  if (fs::exists(kModule) && std::system("command -v softhsm2-util >/dev/null") == 0) return true;
  WARN("SoftHSM is not installed (apt-get install softhsm2)");
  return false;
}

std::unique_ptr<TokenKey> open(const std::string& named, EVP_PKEY* of_certificate,
                               const std::string& pin = "1234") {
  auto uri = TokenUri::parse("pkcs11:" + named + "?module-path=" + kModule.string());
  REQUIRE(uri.has_value());
  SecretBytes secret(pin.empty() ? 0 : pin.size() + 1);
  if (!pin.empty()) std::memcpy(secret.data(), pin.c_str(), pin.size() + 1);
  auto key = std::make_unique<TokenKey>(*std::move(uri), std::move(secret));
  key->belongs_to(of_certificate);
  return key;
}

// A signature that the key's thread makes, verified.
std::string sign(TokenKey& key, EVP_PKEY* public_key) {
  auto said = std::make_shared<std::promise<std::string>>();
  auto coming = said->get_future();
  REQUIRE(key.run([said, public_key](EVP_PKEY* secret, const std::string& failure) {
    const bool done = secret && fits(secret, public_key);
    said->set_value(done ? "signed" : failure);
  }));
  return coming.get();
}

TEST_CASE("token key: keys of a token sign, and what is wrong with others is said") {
  if (!has_softhsm()) return;
  const Folder folder;
  folder.make_token("one"), folder.make_token("two"), folder.make_token("two");
  const EvpKey ec(EVP_EC_gen("P-256")), large(EVP_EC_gen("P-384")), rsa(EVP_RSA_gen(2048));
  folder.import("one", ec.get(), "ec", "01"), folder.import("one", large.get(), "large", "02");
  folder.import("one", rsa.get(), "rsa", "03");
  folder.import("one", EvpKey(EVP_EC_gen("P-256")).get(), "twice", "04");
  folder.import("one", ec.get(), "twice", "05");

  const auto try_out = [](const std::string& named, EVP_PKEY* key, const std::string& pin = "1234") {
    return open(named, key, pin)->try_out();
  };
  CHECK(try_out("token=one;object=ec;type=private", ec.get()).empty());
  CHECK(try_out("token=one;id=%02", large.get()).empty());
  CHECK(try_out("token=one;object=rsa", rsa.get()).empty());
  CHECK(try_out("token=one;object=twice;id=%05", ec.get()).empty());
  CHECK(try_out("token=one;object=twice", ec.get()) ==
        "the token has more than one such private key; add id=");
  CHECK(try_out("token=one;object=none", ec.get()) == "the token has no such private key");
  CHECK(try_out("token=three;object=ec", ec.get()) == "no token is present that it describes");
  CHECK(try_out("token=two;object=ec", ec.get()) ==
        "it describes more than one token; add serial=, or module-path=");
  CHECK(try_out("token=one;object=ec", large.get()) == "it is not the key of the certificate");
  CHECK(try_out("token=one;object=ec", rsa.get()) != "");
  CHECK(try_out("token=one;object=ec", ec.get(), "") ==
        "the token has no such private key, or shows it only with a PIN (pin-source=)");
  CHECK(try_out("token=one;object=ec", ec.get(), "9999").starts_with("the token refuses the PIN: "));
  // Of the wrong PIN nothing stays.
  CHECK(try_out("token=one;object=ec", ec.get()).empty());

  // At the same time, and beyond the life of the object.
  auto first = open("token=one;object=ec", ec.get()), second = open("token=one;object=rsa", rsa.get());
  CHECK(sign(*first, ec.get()) == "signed");
  CHECK(sign(*second, rsa.get()) == "signed");
  first.reset();
  CHECK(sign(*second, rsa.get()) == "signed");
}

// Many hardware security modules accept only digests, which they pad themselves, or only whole texts.
TEST_CASE(
    "token key: an RSA key pads for PSS itself, signs padded data, or hashes, too; one of them is enough") {
  if (!has_softhsm()) return;
  const Folder folder;
  folder.make_token("one");
  const EvpKey rsa(EVP_RSA_gen(2048));
  folder.import("one", rsa.get(), "rsa", "01");
  const auto try_out_with = [&](const std::string& mechanisms) {
    REQUIRE(wait_for_token_threads(std::chrono::seconds(60)));  // so that the library is opened again
    folder.configure("slots.mechanisms = " + mechanisms);
    return open("token=one;object=rsa", rsa.get())->try_out();
  };
  CHECK(try_out_with("CKM_RSA_PKCS,CKM_RSA_PKCS_PSS").empty());
  CHECK(try_out_with("CKM_RSA_PKCS,CKM_RSA_X_509").empty());
  const std::string texts =
      "CKM_SHA256_RSA_PKCS,CKM_SHA384_RSA_PKCS,CKM_SHA512_RSA_PKCS,CKM_SHA256_RSA_PKCS_PSS,CKM_SHA384_RSA_"
      "PKCS_PSS";
  CHECK(try_out_with(texts + ",CKM_SHA512_RSA_PKCS_PSS").empty());
  CHECK(
      try_out_with(texts) ==
      "the token does not sign as TLS needs: it needs CKM_RSA_PKCS, CKM_RSA_PKCS_PSS (it lacks CKM_RSA_PKCS, "
      "CKM_RSA_PKCS_PSS), or CKM_RSA_PKCS, CKM_RSA_X_509 (it lacks CKM_RSA_PKCS, CKM_RSA_X_509), or "
      "CKM_SHA256_RSA_PKCS, CKM_SHA384_RSA_PKCS, CKM_SHA512_RSA_PKCS, CKM_SHA256_RSA_PKCS_PSS, "
      "CKM_SHA384_RSA_PKCS_PSS, CKM_SHA512_RSA_PKCS_PSS (it lacks CKM_SHA512_RSA_PKCS_PSS)");
  const std::string said = try_out_with("CKM_RSA_PKCS");
  CHECK(said.find("or CKM_RSA_PKCS, CKM_RSA_X_509 (it lacks CKM_RSA_X_509), or ") != std::string::npos);
}

TEST_CASE("token key: a token that was deleted fails, and the PIN is not tried again after it was refused") {
  if (!has_softhsm()) return;
  const Folder folder;
  folder.make_token("gone");
  const EvpKey ec(EVP_EC_gen("P-256"));
  folder.import("gone", ec.get(), "ec", "01");
  // First: while a process is logged in, a token takes any PIN.
  auto wrong = open("token=gone;object=ec", ec.get(), "9999");
  const std::string refused = wrong->try_out();
  CHECK(refused.starts_with("the token refuses the PIN: "));
  auto key = open("token=gone;object=ec", ec.get());
  CHECK(sign(*key, ec.get()) == "signed");
  for (const auto& each : fs::directory_iterator(folder.path / "tokens")) fs::remove_all(each.path());
  CHECK(sign(*key, ec.get()) != "signed");
  // It would be "no token is present" now.
  CHECK(wrong->try_out() == refused);
}

TEST_CASE("token key: a module that is none is named") {
  auto uri = TokenUri::parse("pkcs11:token=t;object=o?module-path=/nowhere/module.so");
  TokenKey key(*std::move(uri), {});
  const EvpKey ec(EVP_EC_gen("P-256"));
  key.belongs_to(ec.get());
  CHECK(key.try_out().starts_with("the PKCS#11 module /nowhere/module.so cannot be loaded: "));
}

}  // namespace
}  // namespace longhaul::identity
