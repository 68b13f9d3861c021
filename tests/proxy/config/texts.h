// SPDX-License-Identifier: Apache-2.0
// Heads of configurations that are valid, and what is said of a text.
#pragma once
#include <string>

#include "proxy/config/read.h"

namespace longhaul::config::test {

inline const std::string kHex = std::string(63, 'a') + "b";
inline const std::string kFingerprint = "fingerprint = \"sha256:" + kHex + "\"\n";
inline const std::string kIdentity =
    "[identity]\ncertificate = \"a.crt\"\nprivate_key = \"a.key\"\n";  // three lines

inline std::string sentence(const std::string& text) {
  try {
    (void)read_text(text, "dir/a.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// A file with a valid head of four lines, so that what is tested starts in line 5.
inline std::string after_head(const std::string& text) { return "site = \"a\"\n" + kIdentity + text; }

}  // namespace longhaul::config::test
