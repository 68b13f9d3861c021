// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/token_uri.h"

#include <catch2/catch.hpp>

namespace longhaul::identity {
namespace {

std::string error_of(const std::string& text) {
  const auto uri = TokenUri::parse(text);
  return uri ? std::string() : uri.error().message;
}

TEST_CASE("token uri: it names one key of one token, and the PIN's file") {
  const auto uri = TokenUri::parse(
      "pkcs11:token=a%20token;object=intranet;type=private?pin-source=file:/etc/longhaul/pin&module-path=/"
      "usr/lib/softhsm/libsofthsm2.so");
  REQUIRE(uri.has_value());
  CHECK(uri->text() == "pkcs11:token=a%20token;object=intranet;type=private");
  CHECK(uri->pin_file() == "/etc/longhaul/pin");
  CHECK(uri->module() == "/usr/lib/softhsm/libsofthsm2.so");
  for (const char* source : {"/etc/pin", "file:/etc/pin", "file:///etc/pin"})
    CHECK(TokenUri::parse(std::string("pkcs11:serial=1;id=%01?pin-source=") + source)->pin_file() ==
          "/etc/pin");
  CHECK(error_of("pkcs11:serial=1;id=%01").empty());
}

TEST_CASE("token uri: what is not a key of one token is refused, and so is a PIN") {
  const std::string good = "pkcs11:token=t;object=o";
  CHECK(error_of(good).empty());
  for (const char* text :
       {"pkcs11:token=%zz;object=o", "pkcs11:token", "file:/x", "", "pkcs11:token=t;token"})
    CHECK(error_of(text).starts_with("is not a PKCS#11 URI (RFC 7512): "));
  CHECK(error_of(good + "?pin-value=1234").starts_with("contains the PIN itself"));
  CHECK(error_of("pkcs11:object=o").starts_with("needs token= or serial="));
  CHECK(error_of("pkcs11:model=m;object=o").starts_with("needs token= or serial="));
  CHECK(error_of("pkcs11:token=t").starts_with("needs object= or id="));
  CHECK(error_of(good + ";type=cert").starts_with("names an object that is not a private key"));
  CHECK(error_of(good + ";colour=red") == "has an attribute that is not one of RFC 7512");
  CHECK(error_of(good + "?pin-source=%7Ccat%20/etc/pin")
            .starts_with("must have the absolute path of a file in pin-source="));
  CHECK(
      error_of(good + "?pin-source=pin").starts_with("must have the absolute path of a file in pin-source="));
  CHECK(error_of(good + "?module-path=softhsm.so") == "must have an absolute path in module-path=");
  CHECK(error_of(good + "?module-name=softhsm").starts_with("has module-name="));
}

}  // namespace
}  // namespace longhaul::identity
