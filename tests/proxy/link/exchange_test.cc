// SPDX-License-Identifier: Apache-2.0
// A whole short session, byte by byte as golden/exchange.txt and the example of PROTOCOL.md have it: two
// HELLOs, one flow that asks and is answered, both ends, everything acknowledged.
#include <openssl/sha.h>

#include "golden.h"
#include "hand_peer.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

// The lines of the file in order: what one side says is compared, and the file's bytes are what the other
// side hears.
class Script {
 public:
  Buffer check(const std::string& who, Bytes said) {
    REQUIRE(at_ < lines_.size());
    const golden::Line& line = lines_[at_++];
    INFO("line " << at_);
    CHECK(line.name == who);
    CHECK(line.hex == golden::to_hex(said));
    return golden::from_hex(line.hex);
  }
  bool done() const { return at_ == lines_.size(); }

 private:
  std::vector<golden::Line> lines_ = golden::read_lines("exchange.txt");
  std::size_t at_ = 0;
};

Token counting(unsigned first) {
  Token token;
  for (std::size_t i = 0; i < token.size(); ++i) token[i] = std::byte(first + i);
  return token;
}

}  // namespace

TEST_CASE("a complete session sends exactly the bytes of the golden exchange") {
  Script script;
  Buffer hello, answer;
  write_frame(HelloFrame{.nonce = counting(0x10), .site = "branch"}, hello);
  write_frame(HelloFrame{.nonce = counting(0x20), .site = "datacenter"}, answer);
  script.check("dialler", hello);
  script.check("acceptor", answer);
  Token nonces[2] = {counting(0x10), counting(0x20)};
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(nonces), sizeof nonces, digest);
  script.check("session", std::as_bytes(std::span(digest).first(16)));

  TimePoint now{std::chrono::hours(1)};
  CreditPool pool_a(1 << 20, 16), pool_b(1 << 20, 16);
  RetainedBudget kept_a(1 << 20), kept_b(1 << 20);
  Session a({.side = Side::dialler}, pool_a, kept_a, nullptr, now);
  Session b({.side = Side::acceptor}, pool_b, kept_b, nullptr, now);
  a.attach(CarrierId(1), now, 20ms);
  b.attach(CarrierId(1), now, 20ms);
  auto say = [&](Session& from) {
    Buffer out;
    from.on_timeout(now);
    from.outgoing().transmit(CarrierId(1), 1 << 16, 1 << 14, out, now);
    Buffer heard = script.check(&from == &a ? "dialler" : "acceptor", out);
    now += 10ms;
    REQUIRE((&from == &a ? b : a).receive(CarrierId(1), heard, now));
  };
  say(a);
  say(b);

  OpenRequest request = some_request();
  request.client = boost::asio::ip::tcp::endpoint(boost::asio::ip::make_address("10.10.1.2"), 40'000);
  request.source = config::Source::client;
  Stream& near = a.open(request, now);
  near.writer().write(as_bytes("ask"));
  near.writer().end();
  say(a);
  Stream* far = b.find(1_stream);
  REQUIRE(far);
  far->give_answer({});
  CHECK(far->reader().readable().size() == 3);
  far->reader().consume(3, now, 20ms);
  far->writer().write(as_bytes("answer"));
  far->writer().end();
  b.release(1_stream);
  say(b);
  CHECK(near.reader().readable().size() == 6);
  near.reader().consume(6, now, 20ms);
  a.release(1_stream);
  CHECK(a.state().live_streams == 0);
  now += 250ms;  // nothing else is to be said, so the ACK takes its time
  say(a);
  CHECK(b.state().live_streams == 0);
  CHECK(script.done());
}
