// SPDX-License-Identifier: Apache-2.0
// Creates a site's key and certificate. The operator copies the fingerprint to the peer.
#pragma once
#include <filesystem>
#include <stdexcept>
#include <string>

namespace longhaul::identity {

// what() is one sentence; no files were left behind.
class KeygenError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Made {
  std::filesystem::path certificate;
  std::filesystem::path private_key;
  std::string fingerprint;
};

// Writes NAME.key (mode 0600) and NAME.crt into `folder`; never overwrites a file. If root runs it and
// the user "longhaul" exists, the key belongs to that user.
//
// The key is EC P-256: every TLS 1.3 implementation must support it (RFC 8446 section 9.1), hardware modules
// and FIPS builds of OpenSSL do so, too, and OpenSSL signs faster with it than with Ed25519. The certificate
// is self-signed and lasts 20 years: peers pin the key, so an earlier expiry would only break links.
Made keygen(const std::string& name, const std::filesystem::path& folder);

}  // namespace longhaul::identity
