// SPDX-License-Identifier: Apache-2.0
// Both halves between a client and a server of HTTP/2: every request gets what the server would have said,
// whatever else is under way, and the server is asked no more than needed.
#include <catch2/catch.hpp>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/h2/streams.h"
#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream, const std::string& content) {
  const std::string size{static_cast<char>(content.size() >> 16), static_cast<char>(content.size() >> 8),
                         static_cast<char>(content.size())};
  return size + static_cast<char>(type) + static_cast<char>(flags) + std::string(3, '\0') +
         static_cast<char>(stream) + content;
}

struct Pair {
  explicit Pair(unsigned seed) : twins(kDescriptor, seed) {
    twins.on_client_bytes = [this] { client_alive &= client.take(twins.at_client), speak(); };
    twins.on_server_bytes = [this] { web_alive &= web.take(twins.at_server), speak(); };
    client.session.announce({{2, 0}}, 0);
    web.session.announce({{3, 100}}, 0);
  }
  void speak() {
    twins.client_sends(client.out());
    twins.server_sends(web.out());
  }
  void run() {
    speak();
    twins.run();
  }
  const modules::Counters& counters() { return twins.near.module.counters(); }
  std::string get(const std::string& path, std::vector<Field> more = {}) {
    const StreamId stream = client.asks(path, std::move(more));
    run();
    last = &client.messages[stream];
    return last->ended ? last->content : "unfinished";
  }

  kit::Twins twins;
  Client client;
  Web web;
  Peer::Message* last = nullptr;
  bool client_alive = true, web_alive = true;
};

TEST_CASE("http/2: answers are the server's, whatever the cache has and whatever comes in between") {
  std::uint64_t hits = 0, validations = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Pair pair(seed);
    for (int round = 0; round < 6; ++round) {
      std::vector<std::pair<StreamId, std::string>> wanted;
      for (unsigned i = 0; i <= pair.twins.random() % 6; ++i) {
        const std::string path = std::array{"/fresh", "/tagged", "/fresh/2", "/tagged/2",
                                            "/large", "/hints",  "/trailers"}[pair.twins.random() % 7];
        wanted.emplace_back(pair.client.asks(path), pair.web.content_of(path));
        if (pair.twins.random() % 2 == 0) pair.speak();
      }
      pair.run();
      for (const auto& [stream, content] : wanted) {
        const Peer::Message& got = pair.client.messages[stream];
        REQUIRE(got.ended);
        REQUIRE(got.error == 0);
        REQUIRE(got.content == content);
      }
    }
    REQUIRE(pair.client_alive);
    REQUIRE(pair.web_alive);
    pair.twins.client_ends();
    pair.twins.run();
    pair.twins.server_ends();
    pair.twins.run();
    REQUIRE_FALSE(pair.twins.is_reset());
    hits += pair.counters().cache_hits;
    validations += pair.counters().cache_validations;
  }
  CHECK(hits > 100);
  CHECK(validations > 100);
}

TEST_CASE("http/2: what has changed at the server is seen: by its tag, and after a request that changes it") {
  Pair pair(1);
  CHECK(pair.get("/tagged") == "/tagged version 1");
  CHECK(pair.get("/tagged") == "/tagged version 1");
  CHECK(pair.web.not_modified == 1);
  CHECK(pair.last->head.value("cache-status") == "longhaul;fwd=stale;fwd-status=304");
  pair.web.version = "2";
  CHECK(pair.get("/tagged") == "/tagged version 2");
  CHECK(pair.get("/fresh") == "/fresh version 2");
  const int before = pair.web.asked;
  CHECK(pair.get("/fresh") == "/fresh version 2");
  CHECK(pair.last->head.value("cache-status") == "longhaul;hit");
  CHECK(pair.get("/fresh", {{"range", "bytes=1-5"}}) == "fresh");
  CHECK(pair.last->head.value(":status") == "206");
  CHECK(pair.get("/fresh", {{"if-none-match", "\"2\""}}).empty());
  CHECK(pair.last->head.value(":status") == "304");
  CHECK(pair.web.asked == before);
  pair.client.sends("POST", "/fresh", "data");
  pair.run();
  CHECK(pair.get("/fresh") == "/fresh version 21");
}

TEST_CASE("http/2: another 304 than was asked for has the request asked again") {
  Pair pair(1);
  CHECK(pair.get("/tagged") == "/tagged version 1");
  pair.web.on_message = [&](StreamId stream, Peer::Message& message) {
    if (message.head.has("if-none-match"))
      return pair.web.session.respond(stream, response("304", {{"etag", "\"other\""}}), nullptr);
    message.source.add(kit::slice_of("new"));
    message.source.ended = true;
    pair.web.session.respond(stream, response("200"), &message.source);
  };
  CHECK(pair.get("/tagged") == "new");
}

TEST_CASE("http/2: uploads, trailers, informational responses and HEAD pass") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    Pair pair(seed);
    const std::string large(3'000'000, 'u');
    Fields trailers;
    trailers.add({"sum", "9"});
    const StreamId up = pair.client.sends("PUT", "/there", large, trailers);
    pair.run();
    const StreamId hints = pair.client.asks("/hints"), tail = pair.client.asks("/trailers");
    const auto head = pair.client.session.request(request("/large", {}, "HEAD"), nullptr);
    pair.run();
    CHECK(pair.client.messages[up].content == large);
    CHECK(pair.web.messages[1].trailers.value("sum") == "9");
    CHECK(pair.client.messages[hints].informed == std::vector<std::string>{"103"});
    CHECK(pair.client.messages[hints].content == "/hints version 11");
    CHECK(pair.client.messages[tail].trailers.value("checksum") == "7");
    CHECK(pair.client.messages[head.value()].head.value("content-length") == std::to_string(300'000 + 17));
    CHECK(pair.client.messages[head.value()].content.empty());
    CHECK(pair.get("/trailers") == "/trailers version 11");  // not stored
    CHECK(pair.web.not_modified == 0);
  }
}

TEST_CASE(
    "http/2: a client that does not read one response gets the others, and holds no more than the windows") {
  Pair pair(1);
  pair.client.reads = false;
  const std::string huge(12'000'000, 'h');
  pair.web.on_message = [&](StreamId stream, Peer::Message& message) {
    message.source.add(kit::slice_of(message.head.value(":path") == "/huge" ? huge : "small"));
    message.source.ended = true;
    pair.web.session.respond(stream, response("200"), &message.source);
  };
  const StreamId unread = pair.client.asks("/huge");
  pair.run();
  CHECK(pair.client.messages[unread].content.size() == 65'535);  // the client's window
  CHECK(pair.twins.near.module.queued_bytes() + 65'535 <= Streams::kDownWindow);
  CHECK(pair.twins.near.module.queued_bytes() > Streams::kDownWindow / 2);
  pair.client.session.widen(0, 1 << 20);
  const StreamId other = pair.client.asks("/small");
  pair.run();
  CHECK(pair.client.messages[other].content == "small");
  pair.client.session.reset(unread, errors::cancel);
  pair.run();
  CHECK(pair.twins.near.module.queued_bytes() == 0);
  CHECK(pair.web.messages[1].error == errors::cancel);
  pair.client.reads = true;
  const StreamId again = pair.client.asks("/huge");
  pair.run();
  CHECK(pair.client.messages[again].content == huge);
}

TEST_CASE(
    "http/2: the windows of a client that reads at once grow, and it holds no more than the grown ones") {
  Pair pair(1);
  const std::string piece(1'000'000, 'p'), rest(40'000'000, 'r');
  pair.web.on_message = [&](StreamId stream, Peer::Message& message) {
    const bool is_small = message.head.value(":path") == "/small";
    if (is_small) message.source.add(kit::slice_of("small"));
    message.source.ended = is_small;
    pair.web.session.respond(stream, response("200"), &message.source);
  };
  const auto send = [&](StreamId at_server, const std::string& content) {
    pair.web.messages[at_server].source.add(kit::slice_of(content));
    pair.web.session.resume(at_server);
    pair.run();
  };
  // Each piece is read before the next arrives, as on a line. After two responses the connection's window has
  // grown to its limit; the third stream's has to grow nevertheless.
  StreamId at_server = -1;
  for (const auto* path : {"/1", "/2", "/3"}) {
    const StreamId stream = pair.client.asks(path);
    pair.run();
    at_server += 2;
    for (int sent = 0; sent < 24; ++sent) send(at_server, piece);
    CHECK(pair.client.messages[stream].content.size() == 24 * piece.size());
  }
  pair.client.reads = false;
  send(at_server, rest);
  CHECK(pair.twins.near.module.queued_bytes() > Streams::kMostDown.stream / 2);  // announced in halves
  CHECK(pair.twins.near.module.queued_bytes() <= Streams::kMostDown.stream);
  pair.client.session.widen(0, 1 << 20);
  const StreamId other = pair.client.asks("/small");
  pair.run();
  CHECK(pair.client.messages[other].content == "small");
}

TEST_CASE("http/2: resets and the end of the server arrive as what they are") {
  Pair pair(1);
  pair.web.on_message = [&](StreamId stream, Peer::Message& message) {
    const std::string path = message.head.value(":path");
    if (path == "/reset") pair.web.session.reset(stream, errors::refused);
    if (path == "/goes")
      pair.web.session.respond(stream, response("200"), nullptr), pair.web.session.say_goodbye();
  };
  const StreamId reset = pair.client.asks("/reset"), silent = pair.client.asks("/silent");
  pair.run();
  CHECK(pair.client.messages[reset].error == errors::refused);
  pair.client.session.reset(silent, errors::cancel);
  pair.run();
  CHECK(pair.web.messages[3].error == errors::cancel);
  const StreamId goes = pair.client.asks("/goes");
  pair.run();
  CHECK(pair.client.messages[goes].head.value(":status") == "200");
  CHECK(pair.client.goaway);
  pair.twins.server_ends();
  pair.twins.run();
  CHECK(pair.twins.near.lan_ended);
  CHECK(pair.twins.near.stream_ended);
  CHECK_FALSE(pair.twins.is_reset());
}

TEST_CASE("http/2: a server that answers before it has read everything ends the upload") {
  Pair pair(1);
  pair.web.reads = false;
  pair.web.on_message = [&, is_first = true](StreamId stream, Peer::Message&) mutable {
    if (!std::exchange(is_first, false)) return;
    pair.web.session.respond(stream, response("413"), nullptr);
    pair.speak();
    pair.web.session.reset(stream, errors::none);
  };
  const StreamId up = pair.client.sends("POST", "/", std::string(1'000'000, 'u'));
  pair.run();
  CHECK(pair.client.messages[up].head.value(":status") == "413");
  CHECK(pair.client.messages[up].closed);
  CHECK(pair.client.messages[up].error == errors::none);
  pair.web.on_message = nullptr;
  pair.client.asks("/more");
  pair.run();
  CHECK(pair.web.messages.size() == 2);
}

TEST_CASE("http/2: floods end the connection of the client that sends them") {
  const auto after = [](const std::function<void(Pair&)>& flood) {
    Pair pair(1);
    CHECK(pair.get("/fresh") == "/fresh version 1");
    flood(pair);
    return pair.client.goaway || pair.twins.is_reset() || pair.twins.near.lan_ended;
  };
  // Streams opened and reset at once (CVE-2023-44487).
  CHECK(after([](Pair& pair) {
    for (int i = 0; i < 1200 && !pair.client.goaway; ++i) {
      const StreamId stream = pair.client.asks("/silent");
      pair.speak();
      pair.client.session.reset(stream, errors::cancel);
      pair.run();
    }
    CHECK(pair.twins.near.module.state_bytes() < 1'000'000);
  }));
  // A header block without end (CVE-2024-27316), and one that is too large.
  CHECK(after([](Pair& pair) {
    pair.twins.client_sends(frame(1, 1, 3, "\x82"));
    for (int i = 0; i < 1000; ++i) pair.twins.client_sends(frame(9, 0, 3, "\x82"));
    pair.twins.run();
    CHECK(pair.twins.near.module.state_bytes() < 1'000'000);
  }));
  // Frames that want an answer, from a client that reads none.
  Pair pair(1);
  CHECK(pair.get("/fresh") == "/fresh version 1");
  pair.twins.on_client_bytes = [] {};
  std::size_t most = 0;
  for (int i = 0; i < 100'000 && !pair.twins.near.aborted; ++i) {
    pair.twins.near.from_lan(pair.twins.now, kit::slice_of(frame(6, 0, 0, "12345678")));
    std::size_t waits = 0;
    if (i % 1000 == 0)
      for (const Slice& each : pair.twins.near.to_lan) waits += each.size();
    most = std::max(most, waits);
  }
  CHECK(pair.twins.near.aborted);
  CHECK(most < 1'000'000);
}

TEST_CASE("http/2: malformed requests reach no server, and oversized ones neither") {
  Pair pair(1);
  CHECK(pair.get("/fresh") == "/fresh version 1");
  const int before = pair.web.asked;
  std::vector<StreamId> bad;
  bad.push_back(pair.client.asks("/a", {{"connection", "close"}}));
  bad.push_back(pair.client.asks("/a", {{"transfer-encoding", "chunked"}}));
  bad.push_back(pair.client.asks("/a", {{":late", "x"}}));
  bad.push_back(pair.client.asks("/a", {{"split", "a\r\nb: c"}}));
  bad.push_back(pair.client.asks("/a", {{"content-length", "5"}}));
  bad.push_back(pair.client.asks("/a", std::vector<Field>(240, Field{"fff", std::string(240, 'v')})));
  pair.run();
  for (const StreamId stream : bad) CHECK(pair.client.messages[stream].error != errors::none);
  CHECK(pair.web.asked == before);
  CHECK(pair.get("/fresh") == "/fresh version 1");
}

TEST_CASE("http/2: a few informational responses pass, and a flood of them ends its stream") {
  struct Outcome {
    std::size_t informed;
    std::string content;
    std::uint32_t error;
  };
  const auto after = [](unsigned seed, int count, const Fields& block) {
    Pair pair(seed);
    pair.web.on_message = [&](StreamId stream, Peer::Message& message) {
      if (message.head.value(":path") == "/informs")
        for (int i = 0; i < count; ++i) pair.web.session.inform(stream, block);
      message.source.add(kit::slice_of("content"));
      message.source.ended = true;
      pair.web.session.respond(stream, response("200"), &message.source);
    };
    const StreamId stream = pair.client.asks("/informs");
    pair.run();
    CHECK(pair.get("/other") == "content");
    CHECK_FALSE(pair.twins.is_reset());
    const Peer::Message& got = pair.client.messages[stream];
    return Outcome{got.informed.size(), got.content, got.error};
  };
  const Fields small = response("103", {{"link", "</a.css>"}});
  const Fields large = response("103", std::vector<Field>(100, Field{"x", std::string(200, 'x')}));
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    const Outcome few = after(seed, 8, small), many = after(seed, 500, small), huge = after(seed, 8, large);
    CHECK(few.informed == 8);
    CHECK(few.content == "content");
    CHECK(many.informed <= 8);
    CHECK(many.content.empty());
    CHECK(many.error != errors::none);
    CHECK(huge.informed < 8);
    CHECK(huge.error != errors::none);
  }
}

TEST_CASE("http/2: content in frames of one byte arrives, and takes little more than itself") {
  Source source;
  for (int i = 0; i < 100'000; ++i) source.add_copy(bytes_of("x"));
  CHECK(source.bytes() == 100'000);
  int pieces = 0;
  source.pieces.visit({source.pieces.begin_offset(), source.pieces.end_offset()}, [&](Bytes) { return ++pieces > 0; });
  CHECK(pieces < 20);
  source.clear();
  CHECK(source.bytes() == 0);
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    Pair pair(seed);
    const auto up = pair.client.session.request(request("/there", {}, "PUT"), &source);
    pair.speak();
    std::string content;
    for (int i = 0; i < 3000; ++i) {
      content += static_cast<char>('a' + i % 26);
      pair.twins.client_sends(frame(0, 0, 1, content.substr(content.size() - 1)));
    }
    pair.twins.client_sends(frame(0, 1, 1, ""));
    pair.run();
    CHECK(up == 1);
    CHECK(pair.web.messages[1].content == content);
    CHECK(pair.client.messages[1].content == content);
  }
}

TEST_CASE("http/2: when memory is short, a connection with much state ends, and an ordinary one goes on") {
  for (const std::size_t size : {10u, 20'000u}) {
    INFO("fields of " << size << " bytes");
    Pair pair(1);
    for (int i = 0; i < 80; ++i) {
      pair.client.asks("/silent", {{"x", std::string(size, 'x')}});
      pair.speak();
      pair.run();  // else the connection begins with more than is read before it is known
    }
    const std::size_t state_bytes = pair.twins.near.module.state_bytes();
    INFO("state of " << state_bytes << " bytes");
    const bool is_large = state_bytes > 2 << 20;
    CHECK(is_large == (size > 10));
    pair.twins.near.module.give_up_memory(pair.twins.now);
    pair.twins.near.collect();
    CHECK(pair.twins.near.aborted == is_large);
    if (!is_large) CHECK(pair.get("/fresh") == "/fresh version 1");
  }
}

TEST_CASE("http/2: switched off, requests that run go on and the client is asked to connect anew") {
  Pair pair(1);
  CHECK(pair.get("/fresh") == "/fresh version 1");
  const StreamId stream = pair.client.asks("/silent");
  pair.run();
  pair.twins.near.module.on_surroundings(pair.twins.now, {});
  pair.twins.near.collect();
  pair.run();
  CHECK(pair.client.goaway);
  CHECK_FALSE(pair.client.messages[stream].closed);
}

TEST_CASE("http/2: of a server's pushes nothing comes") {
  Pair pair(1);
  // PUSH_PROMISE for stream 2 on stream 1, as if push had not been switched off.
  pair.web.on_message = [&](StreamId, Peer::Message&) {
    pair.twins.server_sends(std::string("\0\0\x05\5\4\0\0\0\1\0\0\0\2\x82", 14));
  };
  const StreamId stream = pair.client.asks("/silent");
  pair.run();
  for (const auto& [number, message] : pair.client.messages) CHECK(number == stream);
  CHECK_FALSE(pair.twins.is_reset());
}

}  // namespace
}  // namespace longhaul::http::h2
