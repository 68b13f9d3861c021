// SPDX-License-Identifier: Apache-2.0
// Hello and proof: HMAC-SHA256 over both nonces, different for the two sides so that neither can be played
// back.
#include "tools/measuring/greeting.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>

#include "tools/measuring/messages.h"
#include "tools/measuring/trouble.h"

namespace longhaul::measuring {
namespace {

constexpr std::size_t kNonce = 16;  // bytes
constexpr std::size_t kLongestName = 64;

std::string hexadecimal(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string draw_nonce() {
  std::array<unsigned char, kNonce> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw Trouble("cannot generate random bytes");
  return hexadecimal(bytes.data(), bytes.size());
}

}  // namespace

Greeting::Greeting(Identity identity, Side side)
    : identity_(std::move(identity)), side_(side), nonce_(draw_nonce()) {}

boost::json::object Greeting::hello() const {
  boost::json::object message;
  message["program"] = identity_.program;
  message["version"] = identity_.version;
  message["release"] = LONGHAUL_VERSION;
  message["nonce"] = nonce_;
  return message;
}

void Greeting::read_hello(const boost::json::object& message, const std::string& peer) {
  const std::string program = text(message, "program", kLongestName);
  if (program != identity_.program)
    throw Trouble(peer + " is " + fit_to_print(program) + ", but " + identity_.program + " was expected");
  const auto version = number(message, "version", 0, 1'000'000);
  const std::string release = fit_to_print(text(message, "release", kLongestName));
  if (version != identity_.version)
    throw Trouble(peer + " has release " + release + " of " + program + ", which speaks version " +
                  std::to_string(version) +
                  "; this program has release " LONGHAUL_VERSION ", which speaks version " +
                  std::to_string(identity_.version) + ": both ends must have the same release");
  peer_nonce_ = text(message, "nonce", kLongestName);
  if (peer_nonce_.size() != 2 * kNonce || peer_nonce_ == nonce_)
    throw Trouble(peer + " sent an invalid nonce");
}

std::string Greeting::proof_of(Side side) const {
  const bool own = side == side_;
  const std::string subject = identity_.program + (side == Side::dials ? "|dials|" : "|listens|") +
                              (own ? nonce_ : peer_nonce_) + "|" + (own ? peer_nonce_ : nonce_);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), identity_.token.data(), static_cast<int>(identity_.token.size()),
            reinterpret_cast<const unsigned char*>(subject.data()), subject.size(), digest.data(), &size))
    throw Trouble("OpenSSL has no HMAC-SHA256");
  return hexadecimal(digest.data(), size);
}

boost::json::object Greeting::proof() const {
  boost::json::object message;
  message["proof"] = proof_of(side_);
  return message;
}

void Greeting::read_proof(const boost::json::object& message, const std::string& peer) const {
  const std::string theirs = text(message, "proof", 2 * EVP_MAX_MD_SIZE);
  const std::string right = proof_of(side_ == Side::dials ? Side::listens : Side::dials);
  if (theirs.size() == right.size() && CRYPTO_memcmp(theirs.data(), right.data(), right.size()) == 0) return;
  throw Trouble(peer + " has a different token" + (identity_.token.empty() ? ": this side has none" : ""));
}

}  // namespace longhaul::measuring
