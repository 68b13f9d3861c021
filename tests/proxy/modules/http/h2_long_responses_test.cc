// SPDX-License-Identifier: Apache-2.0
// Responses whose requests say nothing of their priority: short ones do not wait for downloads, and downloads
// get equal shares; on one connection, and through both halves with prefetch.
#include "proxy/modules/http/h2/long_responses.h"

#include <catch2/catch.hpp>

#include "proxy/modules/http/h2/settings.h"
#include "tests/proxy/modules/http/h2_peers.h"
#include "tests/proxy/modules/http/with_prefetch.h"

namespace longhaul::http::h2 {
namespace {

constexpr std::int32_t kWide = 64 << 20;

// A server that has all content at once, and a client that reads what has crossed a narrow line.
struct NarrowLine {
  NarrowLine() {
    server.session.announce(settings_for_client(kWide, 100), kWide);
    client.session.announce({{4, kWide}}, kWide);
    exchange();
  }
  void exchange() {
    std::string up = client.out();
    REQUIRE(server.take(up));
    carry(0);
  }
  // At least so many bytes.
  void carry(std::size_t bytes) {
    Buffer frames;
    server.session.drain(frames, std::max<std::size_t>(bytes, 1));
    std::string text = text_of(frames);
    REQUIRE(client.take(text));
  }
  StreamId download(std::size_t bytes, std::vector<Field> fields = {}) {
    const StreamId stream = client.asks("/", std::move(fields));
    exchange();
    Source& source = server.messages[stream].source;
    source.add(kit::slice_of(std::string(bytes, 'x')));
    source.ended = true;
    server.session.respond(stream, response("200"), &source);
    return stream;
  }
  std::size_t got(StreamId stream) { return client.messages[stream].content.size(); }

  Client client;
  Peer server{Session::Role::server};
};

}  // namespace

TEST_CASE("http/2 long responses: each begins to share once, when its first bytes are sent") {
  LongResponses long_responses;
  long_responses.add(1), long_responses.add(3), long_responses.add(5);
  long_responses.on_sent(1, LongResponses::kShortBytes - 1);
  long_responses.on_sent(7, 1 << 30);  // has a priority
  CHECK(long_responses.poll().empty());
  long_responses.on_sent(1, 1);
  long_responses.on_sent(1, 1 << 30);
  long_responses.on_sent(3, 1 << 30);
  CHECK(long_responses.poll() == std::vector<LongResponses::Stream>{1, 3});
  CHECK(long_responses.poll().empty());
  long_responses.remove(5);
  long_responses.on_sent(5, 1 << 30);
  CHECK(long_responses.poll().empty());
}

TEST_CASE("http/2 long responses: a short response does not wait for a download") {
  NarrowLine line;
  const StreamId large = line.download(4 << 20);
  line.carry(500'000);
  const StreamId small = line.download(20'000);
  line.carry(60'000);
  CHECK(line.got(small) == 20'000);
  CHECK(line.client.messages[small].ended);
  CHECK(line.got(large) < 1'000'000);
  line.carry(5 << 20);
  CHECK(line.got(large) == 4 << 20);
}

TEST_CASE("http/2 long responses: downloads get equal shares, whenever they began") {
  NarrowLine line;
  const StreamId first = line.download(8 << 20);
  line.carry(2 << 20);
  const StreamId second = line.download(8 << 20), third = line.download(8 << 20);
  const std::size_t before = line.got(first);
  line.carry(3 << 20);
  const std::size_t shares[] = {line.got(first) - before, line.got(second), line.got(third)};
  for (const std::size_t share : shares) {
    CHECK(share > 900'000);
    CHECK(share < 1'200'000);
  }
}

TEST_CASE("http/2 long responses: the parts of a page, which are short, arrive one after the other") {
  NarrowLine line;
  const StreamId first = line.download(60'000), second = line.download(60'000);
  line.carry(50'000);
  CHECK(line.got(second) == 0);
  line.carry(70'000);
  CHECK(line.got(first) == 60'000);
  CHECK(line.got(second) == 60'000);
}

TEST_CASE("http/2 long responses: the priorities of a client that has some are its own") {
  NarrowLine line;
  const std::vector<Field> in_turn{{"priority", "u=3"}}, urgent{{"priority", "u=1"}};
  const StreamId first = line.download(1 << 20, in_turn), second = line.download(1 << 20, in_turn);
  line.carry(500'000);
  CHECK(line.got(second) == 0);
  const StreamId third = line.download(1 << 20, urgent);
  const std::size_t before = line.got(first);
  line.carry(900'000);
  CHECK(line.got(first) == before);
  CHECK(line.got(second) == 0);
  CHECK(line.got(third) > 800'000);
}

TEST_CASE("http/2 long responses: with prefetch, a short response overtakes a download through both halves") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    kit::Twins twins(kWithPrefetch, seed,
                     kDescriptor.make({.ahead_bytes = 8 << 20, .cache_bytes = 8 << 20, .daemon_number = 1}));
    Client browser;
    Peer server{Session::Role::server};
    browser.session.announce({{4, kWide}}, kWide);
    server.session.announce({{3, 100}}, 0);
    server.on_message = [&](StreamId stream, Peer::Message& message) {
      if (!message.ended) return;
      const bool is_large = message.head.value(":path") == "/large";
      message.source.add(kit::slice_of(std::string(is_large ? 3'000'000 : 1'000, 'x')));
      message.source.ended = true;
      server.session.respond(stream, response("200"), &message.source);
    };
    const auto speak = [&] {
      twins.client_sends(browser.out());
      twins.server_sends(server.out());
    };
    StreamId large = 0, small = 0;
    std::size_t had_of_large = 0;
    twins.on_server_bytes = [&] {
      REQUIRE(server.take(twins.at_server));
      speak();
    };
    twins.on_client_bytes = [&] {
      REQUIRE(browser.take(twins.at_client));
      if (small == 0 && browser.messages[large].content.size() > 200'000) small = browser.asks("/small");
      if (small != 0 && browser.messages[small].ended && had_of_large == 0)
        had_of_large = browser.messages[large].content.size();
      speak();
    };
    large = browser.asks("/large");
    speak();
    twins.run();
    REQUIRE_FALSE(twins.is_reset());
    REQUIRE(browser.messages[large].content.size() == 3'000'000);
    REQUIRE(browser.messages[small].content.size() == 1'000);
    CHECK(had_of_large < 2'000'000);
  }
}

}  // namespace longhaul::http::h2
