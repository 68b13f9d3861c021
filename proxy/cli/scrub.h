// SPDX-License-Identifier: Apache-2.0
// Removes secrets from text that leaves this host in a support archive: those that are known, and whatever looks
// like one. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace longhaul::cli {

inline constexpr std::string_view kRemoved = "(removed)";

class Scrubber {
 public:
  // Secrets of this host, as text. A line of a PEM file counts by itself. What is shorter than 16 characters would
  // also remove what is no secret, and is ignored.
  void know(std::string_view secret);

  // Replaces known secrets, PEM blocks of private keys, runs of 64 or more hexadecimal digits without "sha256:" before
  // them, and what follows `password`, `secret`, `token` or `psk` as a value.
  std::string scrub(std::string text) const;
  // The same for a configuration file, without its comments: a comment can say anything.
  std::string scrub_toml(std::string_view text) const;

 private:
  std::vector<std::string> secrets_;
};

}  // namespace longhaul::cli
