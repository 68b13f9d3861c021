// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/scrub.h"

#include <algorithm>
#include <array>

namespace longhaul::cli {
namespace {

constexpr std::size_t kShortestKnown = 16;
constexpr std::size_t kDigitsOfAKey = 64;  // 256 bits
constexpr std::size_t kDigitsOfAHash = 32;  // of a password, as used by NTLM

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

void replace_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + kRemoved.size()))
    text.replace(at, what.size(), kRemoved);
}

void remove_pem(std::string& text) {
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ";
  for (std::size_t at = 0; (at = text.find(kBegin, at)) != std::string::npos;) {
    const std::size_t line = text.find('\n', at);
    const bool is_private = std::string_view(text).substr(at, line - at).find("PRIVATE KEY") != std::string::npos;
    if (!is_private) {
      at += kBegin.size();
      continue;
    }
    std::size_t end = text.find(kEnd, at);
    if (end != std::string::npos) end = std::min(text.find('\n', end), text.size());
    text.replace(at, end == std::string::npos ? std::string::npos : end - at, kRemoved);
  }
}

void remove_long_hex(std::string& text) {
  constexpr std::string_view kFingerprint = "sha256:";
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_hex(text[end])) ++end;
    const bool is_fingerprint = at >= kFingerprint.size() && end - at == kDigitsOfAKey &&
                                text.compare(at - kFingerprint.size(), kFingerprint.size(), kFingerprint) == 0;
    if (end - at >= kDigitsOfAKey && !is_fingerprint) {
      text.replace(at, end - at, kRemoved);
      at += kRemoved.size();
    } else {
      at = end + 1;
    }
  }
}

// NAME = VALUE, NAME=VALUE, NAME: VALUE; names that end in _file are paths.
void remove_named(std::string& text) {
  constexpr std::array<std::string_view, 6> kNames{"authorization", "password", "passphrase", "secret", "token", "psk"};
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  for (const std::string_view name : kNames) {
    for (std::size_t at = 0; (at = lower.find(name, at)) != std::string::npos;) {
      at += name.size();
      std::size_t value = at;
      const auto skip = [&](std::string_view any) {
        while (value < lower.size() && any.find(lower[value]) != std::string_view::npos) ++value;
      };
      skip("\"' \t");
      if (value == lower.size() || (lower[value] != '=' && lower[value] != ':')) continue;
      ++value;
      skip(" \t");
      std::size_t end = value;
      const char quote = end < lower.size() && (lower[end] == '"' || lower[end] == '\'') ? lower[end] : '\0';
      if (quote != '\0') end = lower.find(quote, end + 1);
      else end = lower.find_first_of(name == "authorization" ? "\r\n" : " \t\n,;&}", end);  // that has a scheme, too
      end = std::min(end, lower.size());
      if (quote != '\0' && end < lower.size()) ++end;
      if (end == value) continue;
      text.replace(value, end - value, kRemoved);
      lower.replace(value, end - value, kRemoved);
      at = value + kRemoved.size();
    }
  }
}

// Outside of strings, a # begins a comment. Multi-line strings are not recognised: their lines are kept up to
// the first #.
std::string without_comment(std::string_view line) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '"' && c == '\\') {
      ++i;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return std::string(line.substr(0, i));
    }
  }
  return std::string(line);
}

}  // namespace

void Scrubber::know(std::string_view secret) {
  while (!secret.empty()) {
    const std::size_t end = std::min(secret.find_first_of("\r\n"), secret.size());
    const std::string_view line = secret.substr(0, end);
    if (line.size() >= kShortestKnown && !line.starts_with("-----")) secrets_.emplace_back(line);
    // Of USER:HASH, the hash alone is a secret, too.
    const std::string_view last = line.substr(line.rfind(':') + 1);
    if (last.size() >= kDigitsOfAHash && last.size() < line.size() && std::ranges::all_of(last, is_hex)) secrets_.emplace_back(last);
    secret.remove_prefix(std::min(end + 1, secret.size()));
  }
}

std::string Scrubber::scrub(std::string text) const {
  for (const std::string& secret : secrets_) replace_all(text, secret);
  remove_pem(text);
  remove_long_hex(text);
  remove_named(text);
  return text;
}

std::string Scrubber::scrub_toml(std::string_view text) const {
  std::string kept;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    kept += without_comment(text.substr(0, end)) + '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return scrub(std::move(kept));
}

}  // namespace longhaul::cli
