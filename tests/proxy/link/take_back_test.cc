// SPDX-License-Identifier: Apache-2.0
// Taking back a stream's data when its link is lost: everything, if carriers got only the OPEN; otherwise
// nothing.
#include "codecs/bytes.h"
#include "hand_peer.h"
#include "toy_codec.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

std::string text_of(const std::optional<Buffer>& bytes) {
  return bytes ? std::string(as_text(*bytes)) : std::string("nothing");
}

// A session that has credit, and whose carrier takes what it is asked to.
struct Sender {
  explicit Sender(BlockCodec* codec = nullptr)
      : session({.side = Side::dialler}, pool, retained, codec, now) {
    session.attach(CarrierId(1), now, 20ms);
    transmit();
    Buffer credit;
    write_frame(OpenCreditFrame{1 << 20, 64 << 10}, credit);
    REQUIRE(session.receive(CarrierId(1), credit, now));
    transmit();
  }
  void transmit(std::size_t budget = 1 << 20) {
    Buffer out;
    session.outgoing().transmit(CarrierId(1), budget, 16 * 1024, out, now);
  }

  TimePoint now{std::chrono::hours(1)};
  CreditPool pool{8 << 20, 64};
  RetainedBudget retained{8 << 20};
  Session session;
};

}  // namespace

TEST_CASE("data that was not handed to a carrier can be taken back, with blocks and without") {
  ToyCodec codec;
  const bool blocks = GENERATE(false, true);
  Sender sender(blocks ? &codec : nullptr);
  Stream& stream = sender.session.open(some_request(), sender.now);
  const auto retained = sender.retained.used_bytes();
  std::string written;
  SECTION("not even the open went") {}
  SECTION("the open went") { sender.transmit(); }
  for (std::size_t size : {1u, 5u, 3000u, 40'000u}) {
    std::string piece(size, static_cast<char>('a' + size % 26));
    stream.writer().write(as_bytes(piece));
    written += piece;
  }
  Buffer large(20'000, std::byte{'x'});
  stream.writer().write(Slice::copy_of(large));
  written += std::string(large.size(), 'x');
  const auto back = stream.take_back();
  REQUIRE(back);
  CHECK((text_of(back) == written));
  CHECK(stream.reader().state() == ReadState::reset);
  CHECK(sender.retained.used_bytes() <= retained);
  CHECK_FALSE(stream.take_back());
  // What is sent of it now is that it is over.
  sender.session.release(stream.id());
  sender.transmit();
  CHECK(stream.writer().output().sending().unsent_bytes() == 0);
}

TEST_CASE("data that was handed to a carrier cannot be taken back, acknowledged or not") {
  ToyCodec codec;
  const bool blocks = GENERATE(false, true);
  Sender sender(blocks ? &codec : nullptr);
  Stream& stream = sender.session.open(some_request(), sender.now);
  SECTION("all of it") {
    stream.writer().write(as_bytes("an order"));
    sender.transmit();
  }
  SECTION("all of it, and the carrier is gone") {
    stream.writer().write(as_bytes("an order"));
    sender.transmit();
    sender.session.detach(CarrierId(1), sender.now);
  }
  SECTION("the first byte, and more waits") {
    sender.transmit();
    stream.writer().write(as_bytes("o"));
    sender.transmit();
    stream.writer().write(as_bytes("rder"));
  }
  SECTION("only the end") {
    stream.writer().end();
    sender.transmit();
  }
  CHECK_FALSE(stream.take_back());
  CHECK(stream.reader().state() == ReadState::open);
}

TEST_CASE("an end, a message or an answer cannot be taken back") {
  HandPeer peer(Side::dialler);
  REQUIRE(peer.send(OpenCreditFrame{1 << 20, 64 << 10}));
  Stream& stream = peer.session.open(some_request(), peer.now);
  SECTION("an end") { stream.writer().end(); }
  SECTION("a message") { stream.writer().write_message(as_bytes("to the twin")); }
  SECTION("an answer") { REQUIRE(peer.send_stream(1_stream, 0, answer_record())); }
  CHECK_FALSE(stream.take_back());
}

TEST_CASE("data of a stream that the peer opened cannot be taken back") {
  HandPeer peer(Side::acceptor);
  REQUIRE(peer.send_stream(1_stream, 0, open_record(some_request())));
  REQUIRE(peer.session.find(1_stream));
  CHECK_FALSE(peer.session.find(1_stream)->take_back());
}
