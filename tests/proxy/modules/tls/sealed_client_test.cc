// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/sealed_client.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace longhaul::tls {
namespace {

// TLS_AES_128_GCM_SHA256
constexpr std::uint16_t kSuite13 = 0x1301;

// A client with the record layer of TLS 1.3, and the near half's side of it.
struct Sealing {
  Buffer client_secret = Buffer(32, std::byte{1}), server_secret = Buffer(32, std::byte{2});
  twin::Outputs<Message> out;
  SealedClient client{out, {.suite = kSuite13, .client = client_secret, .server = server_secret}};
  RecordSealer seals{*RecordSuite::of(kSuite13), client_secret, 0};
  RecordOpener opens{*RecordSuite::of(kSuite13), server_secret, 0};
  Records records;

  void say(ContentType type, const std::string& text) {
    const Bytes piece = std::as_bytes(std::span(text));
    Buffer sealed;
    REQUIRE(seals.seal(type, std::span(&piece, 1), sealed));
    records.push(sealed);
  }
  void data(const std::string& text) { say(ContentType::application_data, text); }
  void alert(int level, int description) {
    say(ContentType::alert, {static_cast<char>(level), static_cast<char>(description)});
  }
  void update(int requested) {
    say(ContentType::handshake, {24, 0, 0, 1, static_cast<char>(requested)});
    seals.update();
  }
  std::pair<SealedClient::Next, std::string> read() {
    Buffer plain;
    const SealedClient::Next next = client.read(records, plain);
    return {next, std::string(reinterpret_cast<const char*>(plain.data()), plain.size())};
  }
  // What the client hears: data as it is, others as (type,bytes).
  std::string heard() {
    std::string text;
    while (auto output = out.poll()) {
      const Bytes record = std::get<modules::ToLan>(*output).bytes.bytes();
      Buffer plain;
      const auto type = opens.open(record, plain);
      REQUIRE(type);
      if (*type == ContentType::application_data) {
        text.append(reinterpret_cast<const char*>(plain.data()), plain.size());
        continue;
      }
      text += '(' + std::to_string(static_cast<int>(*type));
      for (std::byte b : plain) text += ',' + std::to_string(static_cast<int>(b));
      text += ')';
      if (*type == ContentType::handshake) opens.update();
    }
    return text;
  }
};

TEST_CASE("tls sealed client: data is opened and sealed, and closed by close_notify behind it") {
  Sealing one;
  CHECK(one.read() == std::pair(SealedClient::Next::more, std::string()));
  one.data("ques"), one.data("tion");
  CHECK(one.read() == std::pair(SealedClient::Next::more, std::string("question")));
  one.client.send(Slice::copy_of(std::as_bytes(std::span("answer", 6))));
  one.client.flush();
  CHECK(one.heard() == "answer");
  one.data("!"), one.alert(1, 0), one.data("ignored");
  CHECK(one.read() == std::pair(SealedClient::Next::closed, std::string("!")));
  one.client.close();
  CHECK(one.heard() == "(21,1,0)");
  Sealing fails;
  fails.client.alert(80);
  CHECK(fails.heard() == "(21,2,80)");
}

TEST_CASE("tls sealed client: what is sent together is one record, before anything else") {
  const auto send = [](SealedClient& client, std::initializer_list<std::string_view> pieces) {
    for (const std::string_view piece : pieces) client.send(Slice::copy_of(std::as_bytes(std::span(piece))));
  };
  Sealing one;
  send(one.client, {"ans", "", "wer"});
  CHECK_FALSE(one.out.poll());
  one.client.close();
  Buffer plain;
  CHECK(one.opens.open(std::get<modules::ToLan>(one.out.poll().value()).bytes.bytes(), plain) ==
        ContentType::application_data);
  CHECK(plain.size() == 6);
  CHECK(one.heard() == "(21,1,0)");
  one.client.flush();
  CHECK_FALSE(one.out.poll());

  const Buffer secret(20, std::byte{3});
  twin::Outputs<Message> out;
  SealedClient old(out, {.suite = 0xC02F, .client = secret, .server = secret});
  Tls12Opener opens(*Tls12Suite::of(0xC02F), secret, 0);
  send(old, {"ans", "wer"});
  old.flush();
  plain.clear();
  CHECK(opens.open(std::get<modules::ToLan>(out.poll().value()).bytes.bytes(), plain) ==
        ContentType::application_data);
  CHECK(plain.size() == 6);
  CHECK_FALSE(out.poll());
}

TEST_CASE(
    "tls sealed client: an alert ends it behind the plaintext, except one that says that it is cancelled") {
  Sealing one;
  one.alert(1, 90), one.data("last");
  CHECK(one.read() == std::pair(SealedClient::Next::more, std::string("last")));
  one.data("more"), one.alert(2, 80);
  CHECK(one.read() == std::pair(SealedClient::Next::aborted, std::string("more")));
  CHECK(one.client.alert_heard() == 80);
  CHECK(one.heard().empty());
  Sealing other;
  other.say(ContentType::alert, "\x01");
  CHECK(other.read().first == SealedClient::Next::failed);
  CHECK_FALSE(other.client.alert_heard());
  CHECK(other.heard() == "(21,2,50)");
}

TEST_CASE("tls sealed client: a client that changes its keys is followed, and answered if it asks") {
  Sealing one;
  one.update(0), one.data("a");
  CHECK(one.read() == std::pair(SealedClient::Next::more, std::string("a")));
  CHECK(one.heard().empty());
  one.update(1), one.data("b");
  CHECK(one.read() == std::pair(SealedClient::Next::more, std::string("b")));
  CHECK(one.heard() == "(22,24,0,0,1,0)");
  one.client.send(Slice::copy_of(std::as_bytes(std::span("under the new key", 17))));
  one.client.flush();
  CHECK(one.heard() == "under the new key");
}

TEST_CASE("tls sealed client: what does not decrypt, or has no place there, is answered with an alert") {
  Sealing forged;
  forged.records.push(
      std::as_bytes(std::span("\x17\x03\x03\x00\x20"
                              "12345678901234567890123456789012",
                              37)));
  CHECK(forged.read().first == SealedClient::Next::failed);
  CHECK(forged.heard() == "(21,2,20)");
  Sealing no_record;
  no_record.records.push(std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n", 18)));
  CHECK(no_record.read().first == SealedClient::Next::failed);
  CHECK(no_record.heard() == "(21,2,10)");
  for (const std::string& message :
       {std::string("\x18\x00\x00\x01\x02", 5), std::string("\x18\x00\x00\x01", 4),
        std::string("\x01\x00\x00\x01\x00", 5)}) {
    Sealing other;
    other.say(ContentType::handshake, message);
    CHECK(other.read().first == SealedClient::Next::failed);
    CHECK(other.heard() == "(21,2,10)");
  }
}

TEST_CASE("tls sealed client: records without data are bounded, and data earns more of them") {
  Sealing one;
  for (int i = 0; i < 32; ++i) one.update(0);
  CHECK(one.read().first == SealedClient::Next::more);
  for (int i = 0; i < 4; ++i) one.data(std::string(16'384, 'x'));
  one.update(0);
  CHECK(one.read().first == SealedClient::Next::more);
  one.update(0);
  CHECK(one.read().first == SealedClient::Next::failed);
  CHECK(one.heard() == "(21,2,10)");
}

}  // namespace
}  // namespace longhaul::tls
