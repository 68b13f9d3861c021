// SPDX-License-Identifier: Apache-2.0
// Connections with the pass are accepted, whatever other connections arrive.
#include "tools/measuring/pass.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <vector>

#include "codecs/byte_writer.h"
#include "tools/measuring/door.h"
#include "tools/measuring/trouble.h"

using namespace longhaul;
using namespace longhaul::measuring;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = port;
  return address;
}

class Listener {
 public:
  Listener() : socket_(wan::must(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket")) {
    address_ = loopback(0);
    auto* raw = reinterpret_cast<sockaddr*>(&address_);
    socklen_t size = sizeof address_;
    wan::must(::bind(socket_.get(), raw, size), "bind");
    wan::must(::listen(socket_.get(), 256), "listen");
    wan::must(::getsockname(socket_.get(), raw, &size), "getsockname");
  }
  int get() const { return socket_.get(); }
  wan::Descriptor connect() const {
    wan::Descriptor made{wan::must(::socket(AF_INET, SOCK_STREAM, 0), "socket")};
    wan::must(::connect(made.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_),
              "connect");
    return made;
  }

 private:
  wan::Descriptor socket_;
  sockaddr_in address_{};
};

void say(const wan::Descriptor& socket, Bytes bytes) {
  REQUIRE(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
}

// A connection is accepted, or `strangers` have been refused; fails when neither happens for very long.
std::optional<Door::Admitted> look(Door& door, std::size_t strangers = SIZE_MAX) {
  const auto deadline = Clock::now() + 60s;
  while (Clock::now() < deadline) {
    if (auto admitted = door.look(Clock::now())) return admitted;
    if (door.strangers() >= strangers) return std::nullopt;
    std::vector<pollfd> all;
    door.watch(all);
    ::poll(all.data(), all.size(), 100);
  }
  FAIL("nothing happened at the door");
  return std::nullopt;
}

}  // namespace

TEST_CASE("a pass is sent over the control connection as text, and other text is refused") {
  const Pass pass = Pass::draw();
  CHECK(Pass::of_text(pass.text()).is(pass.bytes()));
  CHECK_FALSE(Pass::draw().is(pass.bytes()));
  CHECK_FALSE(pass.is(pass.bytes().first(15)));
  for (const std::string& wrong : {std::string{}, pass.text().substr(1), pass.text() + "0",
                                   "x" + pass.text().substr(1), "+1" + pass.text().substr(2)})
    CHECK_THROWS_AS(Pass::of_text(wrong), Trouble);
}

TEST_CASE("a pass is checked when it has arrived completely, however it was split") {
  const Pass pass = Pass::draw();
  for (std::size_t piece = 1; piece <= kPassBytes; ++piece)
    for (std::size_t wrong = 0; wrong <= kPassBytes; ++wrong) {  // none of the last
      Buffer shown(pass.bytes().begin(), pass.bytes().end());
      if (wrong < kPassBytes) shown[wrong] ^= std::byte{1};
      PassReader reader;
      auto verdict = PassReader::Verdict::more;
      while (reader.wanted() > 0) {
        REQUIRE(verdict == PassReader::Verdict::more);
        const auto at = kPassBytes - reader.wanted();
        verdict = reader.feed(Bytes(shown).subspan(at, std::min(piece, reader.wanted())), pass);
      }
      REQUIRE(verdict == (wrong < kPassBytes ? PassReader::Verdict::wrong : PassReader::Verdict::right));
    }
}

TEST_CASE("a connection with the pass is accepted among strangers, and later bytes stay unread") {
  const Listener listener;
  const Pass pass = Pass::draw();
  Door door{listener.get(), pass};
  const auto silent = listener.connect();
  const auto wrong = listener.connect();
  { const auto closed = listener.connect(); }
  say(wrong, Pass::draw().bytes());
  CHECK_FALSE(look(door, 2).has_value());  // the wrong one and the closed one
  char byte = 0;
  CHECK(::recv(wrong.get(), &byte, 1, 0) <= 0);  // turned away

  const auto right = listener.connect();
  say(right, pass.bytes().first(5));
  CHECK_FALSE(door.look(Clock::now()).has_value());
  say(right, pass.bytes().subspan(5));
  say(right, as_bytes("data"));
  const auto admitted = look(door);
  REQUIRE(admitted.has_value());
  char data[8];
  CHECK(::recv(admitted->socket.get(), data, sizeof data, MSG_PEEK) > 0);
  CHECK(data[0] == 'd');
  CHECK(door.strangers() == 2);
}

TEST_CASE("strangers are bounded in number and time") {
  const Listener listener;
  Door door{listener.get(), Pass::draw()};
  std::vector<wan::Descriptor> strangers;
  for (int i = 0; i < 70; ++i) strangers.push_back(listener.connect());
  CHECK_FALSE(look(door, 6).has_value());  // the oldest of 70, where 64 have room
  std::vector<pollfd> watched;
  door.watch(watched);
  CHECK(watched.size() == 65);
  CHECK_FALSE(door.look(Clock::now() + 120s).has_value());
  CHECK(door.strangers() == 70);
}
