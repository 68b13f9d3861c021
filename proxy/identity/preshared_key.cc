// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/preshared_key.h"

#include <charconv>
#include <string_view>

#include "proxy/config/read.h"
#include "proxy/identity/secret_file.h"

namespace longhaul::identity {
namespace {

// Two digits per byte, a line end, and one more byte to detect a longer file.
constexpr SecretKind kPresharedKey{.name = "preshared key",
                                   .remedy = "create one with `openssl rand -hex 32`, copy it to both sites",
                                   .most_bytes = 80};

}  // namespace

PresharedKey load_preshared_key(const std::filesystem::path& file) {
  const SecretBytes text = read_secret(file, kPresharedKey);
  const std::string_view digits = as_text(text);
  PresharedKey key;
  bool good = digits.size() >= 64 && digits.size() < kPresharedKey.most_bytes;
  for (std::size_t i = 0; good && i < key.bytes.size(); ++i) {
    std::uint8_t value = 0;
    const char* at = digits.data() + 2 * i;
    const auto [end, error] = std::from_chars(at, at + 2, value, 16);
    good = error == std::errc{} && end == at + 2;
    key.bytes[i] = std::byte{value};
  }
  if (!good || digits.find_first_not_of("\n\r ", 64) != std::string_view::npos)
    throw config::ConfigError(
        file.string() +
        ": a preshared key must be 64 hexadecimal digits, as printed by `openssl rand -hex 32`.");
  return key;
}

PresharedKeys load_preshared_keys(const config::Config& config) {
  PresharedKeys keys;
  for (const config::Peer& peer : config.peers)
    if (peer.preshared_key_file)
      keys[peer.name] = std::make_shared<const PresharedKey>(load_preshared_key(*peer.preshared_key_file));
  return keys;
}

}  // namespace longhaul::identity
