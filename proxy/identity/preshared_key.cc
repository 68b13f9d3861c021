// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/preshared_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "proxy/config/read.h"

namespace longhaul::identity {
namespace {

[[noreturn]] void fail_with(const std::filesystem::path& file, const std::string& sentence) {
  throw config::ConfigError(file.string() + ": " + sentence);
}

}  // namespace

PresharedKey load_preshared_key(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail_with(file, std::string("the preshared key cannot be read: ") + std::strerror(errno) +
                        "; create one with `openssl rand -hex 32`, copy it to both sites, and make it readable by "
                        "root, or, for `longhaul reload`, by the user that the daemon runs as.");
  struct stat status {};
  Secret<80> text;  // two digits for each byte, an end of line, and one more to see that nothing follows
  const bool known = ::fstat(descriptor, &status) == 0;
  const ssize_t size = ::read(descriptor, text.bytes.data(), text.bytes.size());
  ::close(descriptor);
  if (!known || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    fail_with(file,
              "other users can read this preshared key: run chmod 600 on it, and replace it if they have read it.");
  PresharedKey key;
  const char* digits = reinterpret_cast<const char*>(text.bytes.data());
  bool good = size >= 64;
  for (std::size_t i = 0; good && i < key.bytes.size(); ++i) {
    std::uint8_t value = 0;
    const auto [end, error] = std::from_chars(digits + 2 * i, digits + 2 * i + 2, value, 16);
    good = error == std::errc{} && end == digits + 2 * i + 2;
    key.bytes[i] = std::byte{value};
  }
  for (ssize_t i = 64; good && i < size; ++i)
    good = digits[i] == '\n' || digits[i] == '\r' || digits[i] == ' ';
  if (!good || size == static_cast<ssize_t>(text.bytes.size()))
    fail_with(file, "a preshared key must be 64 hexadecimal digits, as printed by `openssl rand -hex 32`.");
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
