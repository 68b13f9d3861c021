// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/key_log.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "proxy/identity/keygen.h"
#include "proxy/link/io/tls_engine.h"
#include "proxy/temporary_folder.h"

namespace longhaul::link {
namespace {

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

std::string first_words(const std::set<std::string>& lines) {
  std::string words;
  for (const std::string& line : lines) words += line.substr(0, line.find(' ')) + ' ';
  return words;
}

TlsContext context_with(const std::shared_ptr<KeyLog>& log) {
  const TemporaryFolder folder;
  const auto made = identity::keygen("site", folder.path());
  return TlsContext(identity::load(config::Identity{made.certificate, made.private_key}), log);
}

// A handshake from end to end; false: it failed.
bool meet(TlsEngine& dialler, TlsEngine& acceptor) {
  Buffer plain;
  bool fine = dialler.send({}).has_value();
  for (int turn = 0; turn < 6 && fine; ++turn) {
    fine = acceptor.receive(std::exchange(dialler.outgoing(), {}), plain).has_value();
    fine = fine && dialler.receive(std::exchange(acceptor.outgoing(), {}), plain).has_value();
  }
  return fine && dialler.established() && acceptor.established();
}

}  // namespace

TEST_CASE("the key log has the secrets of a connection, the same at both ends") {
  const TemporaryFolder folder;
  const TlsContext here = context_with(std::make_shared<KeyLog>(folder.path() / "here"));
  const TlsContext there = context_with(std::make_shared<KeyLog>(folder.path() / "there"));
  const bool with_preshared = GENERATE(false, true);
  auto preshared = std::make_shared<identity::PresharedKey>();
  preshared->bytes.fill(std::byte{7});
  const auto known = [&](const std::string&) {
    return std::optional(TlsEngine::KnownKey{with_preshared ? preshared : nullptr});
  };
  TlsEngine dialler(here, Side::dialler, known), acceptor(there, Side::acceptor, known);
  REQUIRE(meet(dialler, acceptor));
  const auto lines = lines_of(folder.read("here"));
  CHECK(first_words(lines) ==
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET CLIENT_TRAFFIC_SECRET_0 SERVER_HANDSHAKE_TRAFFIC_SECRET SERVER_TRAFFIC_SECRET_0 ");
  CHECK(lines_of(folder.read("there")) == lines);
  // Label, client random, secret of SHA-256.
  CHECK(std::ranges::all_of(lines, [](const std::string& line) { return line.size() == line.find(' ') + 1 + 64 + 1 + 64; }));
}

TEST_CASE("the key log has nothing of a peer that is not known, and does not exist unless it is asked for") {
  const TemporaryFolder folder;
  const TlsContext here = context_with(std::make_shared<KeyLog>(folder.path() / "here"));
  const TlsContext there = context_with(nullptr);
  const auto known = [](const std::string&) { return std::optional(TlsEngine::KnownKey{}); };
  const auto unknown = [](const std::string&) { return std::optional<TlsEngine::KnownKey>(); };
  TlsEngine dialler(there, Side::dialler, known), acceptor(here, Side::acceptor, unknown);
  CHECK_FALSE(meet(dialler, acceptor));
  CHECK(folder.read("here").empty());
}

TEST_CASE("the key log names secret, cipher, session and sender of each direction of UDP") {
  const TemporaryFolder folder;
  KeyLog log(folder.path() / "keys");
  udp::CarrierKeys keys;
  keys.dialler_to_acceptor.id.bytes.fill(std::byte{0x01});
  keys.dialler_to_acceptor.secret.bytes.fill(std::byte{0x0a});
  keys.acceptor_to_dialler.id.bytes.fill(std::byte{0x02});
  keys.acceptor_to_dialler.secret.bytes.fill(std::byte{0x0b});
  Token session;
  session.fill(std::byte{0x0c});
  std::string a, b, c;
  for (int i = 0; i < 32; ++i) a += "0a", b += "0b";
  for (int i = 0; i < 16; ++i) c += "0c";
  const std::string dialled = "LONGHAUL_UDP_SECRET 0101010101010101 CHACHA20_POLY1305 " + a + ' ' + c,
                    accepted = "LONGHAUL_UDP_SECRET 0202020202020202 CHACHA20_POLY1305 " + b + ' ' + c;
  log.write(keys, udp::Cipher::chacha20_poly1305, session, Side::dialler);
  const std::string first = dialled + " dialler\n" + accepted + " acceptor\n";
  CHECK(folder.read("keys") == first);
  // The session goes on over a connection that its acceptor dialled.
  log.write(keys, udp::Cipher::chacha20_poly1305, session, Side::acceptor);
  CHECK(folder.read("keys") == first + dialled + " acceptor\n" + accepted + " dialler\n");
}

TEST_CASE("the key log's file is private, and one that is not is refused") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "keys";
  { KeyLog log(file); }
  struct stat about {};
  REQUIRE(::stat(file.c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0600);
  folder.write("keys", "before\n");
  KeyLog(file).write("after\n");
  CHECK(folder.read("keys") == "before\nafter\n");
  std::filesystem::create_symlink(file, folder.path() / "link");
  CHECK_THROWS(KeyLog(folder.path() / "link"));
  CHECK_THROWS(KeyLog(folder.path()));
  CHECK_THROWS(KeyLog(folder.path() / "missing" / "keys"));
  REQUIRE(::chmod(file.c_str(), 0640) == 0);
  CHECK_THROWS_WITH(KeyLog(file), Catch::Contains("other users may read it"));
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  std::filesystem::create_hard_link(file, folder.path() / "other");
  CHECK_THROWS_WITH(KeyLog(file), Catch::Contains("hard link"));
}

}  // namespace longhaul::link
