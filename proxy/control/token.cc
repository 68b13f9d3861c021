// SPDX-License-Identifier: Apache-2.0
// Creates, reads and compares the token. A file that other users may read or change is refused, not repaired:
// they may already have read it.
#include "proxy/control/token.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "proxy/process/private_file.h"

namespace longhaul::control {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTokenBytes = 32;       // as hex: 64 characters
constexpr std::size_t kLeastCharacters = 32;  // minimum for a token written by the operator
constexpr std::size_t kMostCharacters = 512;

std::string reason_of(int error) { return std::generic_category().message(error); }

std::string random_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw std::runtime_error("cannot generate random bytes for the control token");
  std::string text;
  for (const unsigned char byte : bytes) {
    static constexpr std::string_view digits = "0123456789abcdef";
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

void make_directories(const fs::path& directory) {
  if (directory.empty() || fs::is_directory(directory)) return;
  make_directories(directory.parent_path());
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    throw std::runtime_error("cannot create the directory " + directory.string() + ": " + reason_of(errno));
}

// The file is written under another name and then linked, so that a reader sees the whole token or none, and
// only one of two daemons that start at once creates it. It is synced before it is linked: otherwise a power
// cut could leave an empty token, with which the daemon refuses to start.
void make_token(const fs::path& file) {
  const auto fail = [&file](const std::string& reason) {
    throw std::runtime_error("cannot write the control token " + file.string() + ": " + reason);
  };
  const auto draft = file.string() + "." + std::to_string(::getpid());
  ::unlink(draft.c_str());
  if (const auto made = process::make_private_file(draft, random_token() + "\n", process::Durable::yes);
      !made)
    fail(process::reason_of(made.error()));
  const int linked = ::link(draft.c_str(), file.c_str());
  const int error = errno;
  ::unlink(draft.c_str());
  if (linked != 0 && error != EEXIST) fail(reason_of(error));
}

}  // namespace

boost::system::result<std::string, TokenError> read_token(const fs::path& file) {
  const auto read = process::read_private_file(file, kMostCharacters + 2);
  if (!read)
    return TokenError{
        "cannot read the control token " + file.string() + ": " + process::reason_of(read.error()) +
            "; the daemon's user must be able to read it. If it does not exist, the daemon creates it",
        read.error() == boost::system::errc::no_such_file_or_directory};
  if ((read->mode & 077) != 0)
    return TokenError{
        "the control token " + file.string() +
        " can be read by other users: remove the file; the daemon creates a new one at its next start"};

  std::string_view text = read->text;
  while (text.ends_with('\n') || text.ends_with('\r') || text.ends_with(' ')) text.remove_suffix(1);
  const bool printable = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
  if (text.size() < kLeastCharacters || text.size() > kMostCharacters || !printable)
    return TokenError{
        "the control token " + file.string() + " is not " + std::to_string(kLeastCharacters) + " to " +
        std::to_string(kMostCharacters) +
        " printable characters: remove the file; the daemon creates a new one at its next start"};
  return {boost::system::in_place_value, text};
}

std::string load_or_make_token(const fs::path& state_dir, const fs::path& token_file) {
  const auto file = state_dir / token_file;
  auto token = read_token(file);
  if (token.has_error() && token.error().missing) {
    make_directories(file.parent_path());
    make_token(file);
    token = read_token(file);
  }
  if (token.has_error()) throw std::runtime_error(token.error().sentence);
  return *token;
}

bool same_token(std::string_view presented, std::string_view token) {
  // Digests have equal length, so the time does not even reveal the token's length.
  std::array<unsigned char, SHA256_DIGEST_LENGTH> left{}, right{};
  SHA256(reinterpret_cast<const unsigned char*>(presented.data()), presented.size(), left.data());
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), right.data());
  return !token.empty() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace longhaul::control
