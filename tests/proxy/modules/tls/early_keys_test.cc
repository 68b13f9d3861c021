// SPDX-License-Identifier: Apache-2.0
// Both halves with keys that came before the client's Finished.
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "crypto/tls_records.h"
#include "proxy/modules/tls/descriptor.h"
#include "proxy/modules/tls/near.h"
#include "tests/proxy/modules/kit/watched.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {
namespace {

Slice slice(const std::string& text) { return Slice::copy_of(std::as_bytes(std::span(text))); }
std::string text(const Slice& bytes) {
  return {reinterpret_cast<const char*>(bytes.bytes().data()), bytes.size()};
}

struct EarlyKeys {
  EarlyKeys()
      : near(std::make_unique<Near>(modules::Ends{}, modules::PlaintextReaders{},
                                    std::make_shared<NearSite>())) {
    static const config::FeatureTable table{kDescriptor.features};
    modules::Surroundings told;
    told.features.modules = config::ModuleFeatures::standard(table);
    near.module.on_surroundings({}, told);
  }
  Keys keys() const {
    return {.suite = 0x1301,
            .client_secret = Slice::copy_of(of_client),
            .server_secret = Slice::copy_of(of_server),
            .name = slice("a.corp"),
            .flight = slice("flight")};
  }
  void tell(const Message& message) {
    near.module.from_twin({}, twin::encode(message));
    near.collect();
  }
  Buffer sealed(const std::string& text) {
    const Bytes piece = std::as_bytes(std::span(text));
    Buffer record;
    REQUIRE(of_this_client.seal(ContentType::application_data, std::span(&piece, 1), record));
    return record;
  }
  // What was given to the far half: bytes as they are, messages by their kind.
  std::string given() {
    std::string all;
    for (const modules::Output& output : near.to_twin) {
      if (const auto* bytes = std::get_if<modules::ToStream>(&output))
        all.append(reinterpret_cast<const char*>(bytes->bytes.bytes().data()), bytes->bytes.size());
      if (const auto* message = std::get_if<modules::ToTwin>(&output)) {
        const auto read = twin::decode<Message>(message->message.bytes());
        REQUIRE(read.has_value());
        all += std::holds_alternative<Taken>(*read)       ? "<taken>"
               : std::holds_alternative<Truncated>(*read) ? "<truncated>"
                                                          : "<?>";
      }
    }
    return all;
  }

  Buffer of_client = Buffer(32, std::byte{1}), of_server = Buffer(32, std::byte{2});
  RecordSealer of_this_client{*RecordSuite::of(0x1301), of_client};
  RecordOpener of_near{*RecordSuite::of(0x1301), of_server};
  kit::Watched near;
};

const std::string kChange("\x14\x03\x03\x00\x01\x01", 6);
const std::string kFinished = std::string("\x17\x03\x03\x00\x35", 5) + std::string(53, 'f');

TEST_CASE(
    "tls: with early keys the client's handshake passes, and its data is read from the first record on") {
  EarlyKeys one;
  one.tell(one.keys());
  REQUIRE_FALSE(one.near.aborted);
  // Cut anywhere.
  std::string said = kChange + kFinished;
  const Buffer data = one.sealed("question");
  said.append(reinterpret_cast<const char*>(data.data()), data.size());
  for (const char c : said) one.near.from_lan({}, slice(std::string(1, c)));
  CHECK(one.given() == kChange + kFinished + "<taken>question");
  one.near.end({});
  CHECK(one.given() == kChange + kFinished + "<taken>question<truncated>");
  CHECK(one.near.stream_ended);
  CHECK_FALSE(one.near.aborted);
}

TEST_CASE("tls: a client that ends before its first record of data leaves the rest to the far half") {
  EarlyKeys one;
  one.tell(one.keys());
  one.near.from_lan({}, slice(kChange + kFinished.substr(0, 20)));
  one.near.end({});
  CHECK(one.given() == kChange + kFinished.substr(0, 20));
  CHECK(one.near.stream_ended);
  CHECK_FALSE(one.near.aborted);
}

TEST_CASE("tls: a client that sends records without end before its data is reset") {
  EarlyKeys one;
  one.tell(one.keys());
  for (std::uint64_t sent = 0; sent < Near::kMostHandshakeRecords; ++sent)
    one.near.from_lan({}, slice(kFinished));
  CHECK_FALSE(one.near.aborted);
  one.near.from_lan({}, slice(kFinished));
  CHECK(one.near.aborted);
}

TEST_CASE("tls: the near half sends the client its ticket, and nothing else that a peer calls one") {
  const std::string ticket(
      "\x04\x00\x00\x03"
      "abc",
      7);
  EarlyKeys one;
  one.tell(one.keys());
  one.tell(Session{
      .id = slice("id"), .bytes = slice("session"), .entry = slice("entry"), .ticket = slice(ticket)});
  REQUIRE_FALSE(one.near.aborted);
  Buffer plain;
  REQUIRE(one.near.to_lan.size() == 2);
  CHECK(one.near.to_lan.front().size() == 6);  // the flight
  CHECK(one.of_near.open(one.near.to_lan.back().bytes(), plain) == ContentType::handshake);
  CHECK(std::string(reinterpret_cast<const char*>(plain.data()), plain.size()) == ticket);

  const std::string big = std::string("\x04\x00\x10\x00", 4) + std::string(4096, 'x');
  for (const std::string& other : {std::string("\x18\x00\x00\x01\x00", 5),
                                   std::string("\x04\x00\x00\x04"
                                               "abc",
                                               7),
                                   std::string("\x04\x00\x00\x02"
                                               "abc",
                                               7),
                                   std::string("\x04\x00\x00", 3), big}) {
    CAPTURE(other.size());
    EarlyKeys hostile;
    hostile.tell(hostile.keys());
    hostile.tell(Session{
        .id = slice("id"), .bytes = slice("session"), .entry = slice("entry"), .ticket = slice(other)});
    CHECK(hostile.near.aborted);
    CHECK(hostile.near.to_lan.size() == 1);
  }
}

TEST_CASE("tls: a ticket in TLS 1.2, which has other ones, resets the connection") {
  const auto refused = [](const std::string& ticket) {
    EarlyKeys one;
    one.near.from_lan({}, slice(kFinished));
    Keys keys = one.keys();
    keys.suite = 0xC02B;
    keys.client_secret = keys.server_secret = slice(std::string(20, 's'));
    keys.flight = {};
    one.tell(keys);
    REQUIRE_FALSE(one.near.aborted);
    one.tell(Session{
        .id = slice("id"), .bytes = slice("session"), .entry = slice("entry"), .ticket = slice(ticket)});
    return one.near.aborted;
  };
  CHECK_FALSE(refused(""));
  CHECK(
      refused(std::string("\x04\x00\x00\x03"
                          "abc",
                          7)));
}

// A near half that takes no keys, and passes everything.
TEST_CASE("tls: the far half reads none of the client's data after it has given early keys") {
  const World world;
  const auto instance = kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
  instance->use_secrets(world.policy("a.corp"));
  kit::Watched far(instance->make_far({}, {}));
  static const config::FeatureTable table{kDescriptor.features};
  modules::Surroundings told;
  told.features.modules = config::ModuleFeatures::standard(table);
  far.module.on_surroundings({}, told);
  const Context client_context = world.client_context(), server_context = world.server_context(world.real);
  End client(client_context.get(), true), server(server_context.get(), false);
  SSL_set_tlsext_host_name(client.ssl(), "a.corp");
  bool got_early_keys = false, asked = false;
  std::string said = client.out_after_start(), heard;
  for (int rounds = 0; rounds < 20 && !far.aborted; ++rounds) {
    far.module.from_stream({}, slice(said));
    far.collect();
    for (; !far.to_lan.empty(); far.to_lan.pop_front()) heard += text(far.to_lan.front());
    server.take(heard);
    far.from_lan({}, slice(server.out()));
    std::string at_client;
    for (; !far.to_twin.empty(); far.to_twin.pop_front()) {
      if (const auto* bytes = std::get_if<modules::ToStream>(&far.to_twin.front()))
        at_client += text(bytes->bytes);
      if (const auto* message = std::get_if<modules::ToTwin>(&far.to_twin.front())) {
        const auto read = twin::decode<Message>(message->message.bytes());
        const auto* keys = read ? std::get_if<Keys>(&*read) : nullptr;
        if (keys) at_client += text(keys->flight), got_early_keys |= keys->is_early();
      }
    }
    client.take(at_client);
    if (client.is_up && !std::exchange(asked, true)) client.say("question");
    said = client.out();
  }
  REQUIRE(got_early_keys);
  REQUIRE(asked);
  CHECK(far.aborted);
  CHECK(server.heard.empty());
}

TEST_CASE("tls: early keys of TLS 1.2, or with records before them, reset the connection") {
  const auto refused = [](const auto& change) {
    EarlyKeys one;
    one.near.from_lan({}, slice(kFinished));
    Keys keys = one.keys();
    change(keys);
    one.tell(keys);
    return one.near.aborted;
  };
  CHECK_FALSE(refused([](Keys&) {}));
  CHECK(refused([](Keys& keys) { keys.client_records = 1; }));
  CHECK(refused([](Keys& keys) { keys.server_records = 1; }));
  CHECK(refused([](Keys& keys) { keys.flight = slice(std::string(Keys::kMostFlightBytes + 1, 'x')); }));
  CHECK(refused([](Keys& keys) {
    keys.suite = 0xC02B;
    keys.client_secret = keys.server_secret = slice(std::string(20, 's'));
  }));
}

}  // namespace
}  // namespace longhaul::tls
