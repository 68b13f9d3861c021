// SPDX-License-Identifier: Apache-2.0
// Recorded logins, and anything else, with the keys that open them: a row of tokens, each with its side and
// length. Whatever comes, a login has either a key of a possible size or a reason, and its texts are
// printable.
#include <algorithm>

#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/seal/login.h"
#include "tests/codecs/hex.h"
#include "tests/proxy/modules/smb/seal/captured_keys.h"

namespace longhaul::fuzz::smb_login_target {
using namespace longhaul::smb::seal;

namespace {

std::shared_ptr<const ServerKeys> captured_keys() {
  const Buffer keytab = from_hex(kCapturedKeytab);
  const std::string hashes = "alice:" + std::string(kCapturedHash) + "\n";
  return *ServerKeys::read({.name = "keytab", .content = keytab},
                           {.name = "hashes", .content = as_bytes(hashes)});
}

bool is_printable(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

FUZZ_TARGET(smb_login) {
  static const std::shared_ptr<const ServerKeys> keys = captured_keys();
  const Bytes input = std::as_bytes(std::span(data, size));
  Choices choices(input);
  Login login(keys);
  while (!choices.empty()) {
    const bool is_servers = choices.byte() & 1;
    const std::size_t high = choices.byte(), low = choices.byte();
    const Bytes token = choices.exactly(high << 8 | low);
    is_servers ? login.from_server(token) : login.from_client(token);
    if (const Found* found = login.found()) {
      require(found->key.size() == 16 || found->key.size() == 32);
      require(is_printable(found->user));
    } else {
      require(is_printable(login.missing().detail));
    }
  }
  // The files are the operator's, but may be of any kind.
  (void)ServerKeys::read({.name = "keytab", .content = input}, {});
  (void)ServerKeys::read({}, {.name = "hashes", .content = input});
  return 0;
}

}  // namespace longhaul::fuzz::smb_login_target
