// SPDX-License-Identifier: Apache-2.0
// Removes secrets from text that leaves this host in a support archive: known secrets, and everything that
// looks like a secret. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace longhaul::cli {

inline constexpr std::string_view kRemoved = "(removed)";

class Scrubber {
 public:
  // Adds a secret of this host, as text. Each line of a PEM file counts separately. Secrets of fewer than 16
  // characters are ignored, because they would also match other text.
  void know(std::string_view secret);

  // Replaces known secrets, PEM blocks of private keys, runs of 64 or more hexadecimal digits that do not
  // follow "sha256:", and the values of `password`, `secret`, `token` and `psk`.
  std::string scrub(std::string text) const;
  // The same for a configuration file, and removes its comments, which may contain anything.
  std::string scrub_toml(std::string_view text) const;

 private:
  std::vector<std::string> secrets_;
};

}  // namespace longhaul::cli
