// SPDX-License-Identifier: Apache-2.0
// Both halves between a client and a server: every client gets, in order, what the server would have said, and the server
// is asked no more than needed.
#include <catch2/catch.hpp>

#include "proxy/modules/http/descriptor.h"
#include "tests/proxy/modules/kit/twins.h"

using namespace longhaul;
using kit::Twins;

namespace {

std::string request(std::string_view path, std::string_view fields = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n";
}

// Serves /fresh for an hour, /tagged and /dated only after validation; /chunked is fresh, in chunks; what comes with a body is
// changed. Counts requests.
class Web {
 public:
  explicit Web(Twins& twins) : twins_(twins) {
    twins.on_server_bytes = [this] { answer(); };
  }
  int asked = 0, not_modified = 0;
  std::string version = "1";

 private:
  void answer() {
    for (std::size_t end; (end = twins_.at_server.find("\r\n\r\n", read_)) != std::string::npos;) {
      const std::string head = twins_.at_server.substr(read_, end + 4 - read_);
      const bool posts = head.starts_with("POST");
      if (posts && twins_.at_server.size() < end + 4 + 4) return;
      read_ = end + 4 + (posts ? 4 : 0);
      ++asked;
      const std::string path = head.substr(head.find(' ') + 1, head.find(" HTTP") - head.find(' ') - 1);
      const std::string content = path + " version " + version;
      const std::string tag = "ETag: \"" + version + "\"\r\n";
      const std::string changed = "Mon, 13 Nov 2023 10:00:0" + version.substr(0, 1) + " GMT";
      if (posts) {
        version += "1";
        twins_.server_sends("HTTP/1.1 204 No Content\r\n\r\n");
      } else if (head.find("If-Modified-Since: " + changed + "\r\n") != std::string::npos) {
        ++not_modified;
        twins_.server_sends("HTTP/1.1 304 Not Modified\r\nLast-Modified: " + changed + "\r\n\r\n");
      } else if (head.find("If-None-Match: \"" + version + "\"") != std::string::npos) {
        ++not_modified;
        twins_.server_sends("HTTP/1.1 304 Not Modified\r\n" + tag + "\r\n");
      } else if (path == "/chunked") {
        twins_.server_sends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=3600\r\n\r\n4\r\n" +
                            content.substr(0, 4) + "\r\n" + std::string(1, "0123456789abcdef"[content.size() - 4]) + "\r\n" +
                            content.substr(4) + "\r\n0\r\n\r\n");
      } else {
        twins_.server_sends("HTTP/1.1 200 OK\r\n" + (path == "/fresh"   ? "Cache-Control: max-age=3600\r\n"
                                                     : path == "/dated" ? "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\nLast-Modified: " + changed + "\r\n"
                                                                        : tag) +
                            "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n" + content);
      }
    }
  }
  Twins& twins_;
  std::size_t read_ = 0;
};

// The next response in what has come to the client: its content, or its status if it has none.
class Client {
 public:
  explicit Client(Twins& twins) : twins_(twins) {}
  std::string next() {
    const std::string& all = twins_.at_client;
    const std::size_t end = all.find("\r\n\r\n", read_);
    if (end == std::string::npos) return "nothing";
    head = all.substr(read_, end + 4 - read_);
    read_ = end + 4;
    std::string content;
    if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos) {
      const auto size = static_cast<std::size_t>(std::stoul(head.substr(at + 16)));
      content = all.substr(read_, size);
      read_ += size;
    } else if (head.find("chunked") != std::string::npos) {
      for (std::size_t size = 1; size != 0;) {
        size = std::stoul(all.substr(read_), nullptr, 16);
        read_ = all.find("\r\n", read_) + 2;
        content += all.substr(read_, size);
        read_ += size + 2;
      }
    }
    return content.empty() ? head.substr(9, 3) : content;
  }
  bool is_at_end() const { return read_ == twins_.at_client.size(); }
  std::string head;

 private:
  Twins& twins_;
  std::size_t read_ = 0;
};

}  // namespace

TEST_CASE("http: answers are the server's, in order, whatever the cache has") {
  std::uint64_t hits = 0, validations = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Twins twins(http::kDescriptor, seed);
    Web web(twins);
    Client client(twins);
    for (int round = 0; round < 12; ++round) {
      std::vector<std::string> wanted;
      for (unsigned i = 0; i <= twins.random() % 3; ++i) {
        const std::string path = std::array{"/fresh", "/tagged", "/chunked", "/dated"}[twins.random() % 4];
        twins.client_sends(request(path));
        wanted.push_back(path + " version " + web.version);
      }
      twins.run();
      for (const std::string& each : wanted) REQUIRE(client.next() == each);
      REQUIRE(client.is_at_end());
    }
    twins.client_ends();
    twins.run();
    twins.server_ends();
    twins.run();
    REQUIRE_FALSE(twins.is_reset());
    hits += twins.near.module.counters().cache_hits;
    validations += twins.near.module.counters().cache_validations;
    REQUIRE(twins.near.module.counters().cache_hits + static_cast<std::uint64_t>(web.asked) >= 12);
  }
  CHECK(hits > 0);
  CHECK(validations > 0);
}

TEST_CASE("http: what has changed at the server is seen: by its tag, and after a request that changes it") {
  Twins twins(http::kDescriptor, 1);
  Web web(twins);
  Client client(twins);
  const auto asks = [&](std::string text) {
    twins.client_sends(text);
    twins.run();
    return client.next();
  };
  CHECK(asks(request("/tagged")) == "/tagged version 1");
  CHECK(asks(request("/tagged")) == "/tagged version 1");
  CHECK(web.not_modified == 1);
  web.version = "2";
  CHECK(asks(request("/tagged")) == "/tagged version 2");
  CHECK(asks(request("/dated")) == "/dated version 2");
  CHECK(asks(request("/dated")) == "/dated version 2");
  CHECK(web.not_modified == 2);
  web.version = "3";
  CHECK(asks(request("/dated")) == "/dated version 3");
  CHECK(web.not_modified == 2);
  web.version = "2";
  CHECK(asks(request("/fresh")) == "/fresh version 2");
  const int before = web.asked;
  CHECK(asks(request("/fresh")) == "/fresh version 2");
  CHECK(web.asked == before);
  CHECK(client.head.find("Cache-Status: longhaul;hit\r\n") != std::string::npos);
  CHECK(asks("POST /fresh HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\ndata") == "204");
  CHECK(asks(request("/fresh")) == "/fresh version 21");
}

TEST_CASE("http: a client that has the content gets 304 from the cache") {
  Twins twins(http::kDescriptor, 1);
  Client client(twins);
  int pieces = 0;
  twins.on_server_bytes = [&] {
    if (pieces++ != 0) return;  // of the first request
    twins.server_sends("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nhi");
  };
  twins.client_sends(request("/"));
  twins.run();
  REQUIRE(client.next() == "hi");
  twins.client_sends(request("/", "If-None-Match: \"b\", W/\"a\"\r\n"));
  twins.run();
  CHECK(client.next() == "304");
  CHECK(client.is_at_end());
  CHECK(twins.at_server == request("/"));
}

TEST_CASE("http: what one read gets from the cache is bounded, however long its heads are") {
  for (const char* line : {"", "If-None-Match: \"a\"\r\n"}) {
    INFO(line);
    Twins twins(http::kDescriptor, 1, http::kDescriptor.make({.ahead_bytes = 1 << 20, .cache_bytes = 8 << 20, .daemon_number = 1}));
    Client client(twins);
    const std::string head = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\nX: " + std::string(60'000, 'x') +
                             "\r\nContent-Length: 2\r\n\r\n";
    twins.on_server_bytes = [&, is_said = false]() mutable {
      if (twins.at_server.ends_with("\r\n\r\n") && !std::exchange(is_said, true)) twins.server_sends(head + "hi");
    };
    twins.client_sends(request("/"));
    twins.run();
    REQUIRE(client.next() == "hi");
    std::string many;
    for (int i = 0; i < 1000; ++i) many += request("/", line);
    twins.near.from_lan(twins.now, kit::slice_of(many));
    std::size_t answered = 0, asked = 0;
    for (const Slice& each : twins.near.to_lan) answered += each.size();
    for (const auto& each : twins.near.to_twin)
      if (const auto* bytes = std::get_if<modules::ToStream>(&each)) asked += bytes->bytes.size();
    CHECK(answered > 3 << 20);
    CHECK(answered < (4 << 20) + 2 * head.size());
    CHECK(asked > many.size() / 2);  // the others are the server's
  }
}

TEST_CASE("http: a client that wants the connection to end gets its answer and the end") {
  for (const char* line : {"Connection: close\r\n", ""}) {
    Twins twins(http::kDescriptor, 1);
    Web web(twins);
    Client client(twins);
    twins.client_sends(request("/fresh"));
    twins.run();
    REQUIRE(client.next() == "/fresh version 1");
    twins.client_sends(*line ? request("/fresh", line) : "GET /fresh HTTP/1.0\r\nHost: x\r\n\r\n");
    twins.run();
    CHECK(client.next() == "/fresh version 1");
    CHECK(twins.near.lan_ended);
    CHECK(twins.far.lan_ended);
    twins.server_ends();
    twins.run();
    CHECK(web.asked == 1);
    CHECK_FALSE(twins.is_reset());
  }
}

TEST_CASE("http: what is not understood passes byte for byte, from there on") {
  const std::string smuggled = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + request("/fresh");
  for (const std::string& odd : {smuggled, std::string("\x16\x03\x01 hello"), request("/chat", "Upgrade: websocket\r\n"),
                                 std::string("CONNECT x:443 HTTP/1.1\r\n\r\nanything"),
                                 request("/fresh", "Content-Length: 30\r\n") + request("/hidden"), std::string("GET / HTTP/1.1\nHost: x\n\n"),
                                 std::string(70'000, 'x'), std::string("\r\n\r\n") + request("/fresh")})
    for (unsigned seed = 0; seed < 20; ++seed) {
      INFO("seed " << seed << ", " << odd.substr(0, 40));
      Twins twins(http::kDescriptor, seed);
      Web web(twins);
      Client client(twins);
      twins.client_sends(request("/fresh"));
      twins.run();
      REQUIRE(client.next() == "/fresh version 1");
      twins.on_server_bytes = [] {};
      const std::size_t had = twins.at_server.size(), got = twins.at_client.size();
      twins.client_sends(odd);
      twins.run();
      twins.server_sends("\x01 whatever\r\n\r\nthe server says");
      twins.run();
      CHECK(twins.at_server.substr(had) == odd);
      CHECK(twins.at_client.substr(got) == "\x01 whatever\r\n\r\nthe server says");
      twins.client_ends();
      twins.server_ends();
      twins.run();
      CHECK_FALSE(twins.is_reset());
    }
}

TEST_CASE("http: a server that takes a body for a request poisons nothing") {
  Twins twins(http::kDescriptor, 1);
  Client client(twins);
  const std::string hidden = request("/hidden");
  twins.client_sends("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(hidden.size()) + "\r\n\r\n" + hidden);
  twins.run();
  const auto answer = [](std::string_view content) {
    return "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: " + std::to_string(content.size()) + "\r\n\r\n" + std::string(content);
  };
  // It answers what it took for the second request when the client sends another one.
  twins.server_sends(answer("posted"));
  twins.run();
  twins.client_sends(request("/page"));
  twins.server_sends(answer("hidden"));
  twins.run();
  CHECK(client.next() == "posted");
  CHECK(client.next() == "hidden");
  const std::size_t before = twins.at_server.size();
  twins.client_sends(request("/page"));
  twins.run();
  CHECK(twins.at_server.substr(before) == request("/page"));
}

TEST_CASE("http: a validation answered with another tag is asked again, and one answered with nonsense has no answer") {
  for (const char* said : {"HTTP/1.1 304 Not Modified\r\nETag: \"other\"\r\n\r\n", "nonsense\r\n\r\n"}) {
    const bool is_odd = *said == 'n';
    Twins twins(http::kDescriptor, 1);
    twins.on_server_bytes = [&] { twins.server_sends("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nhi"); };
    twins.client_sends(request("/"));
    twins.run();
    twins.on_server_bytes = [&, is_said = false]() mutable {
      if (!std::exchange(is_said, true)) twins.server_sends(said);
    };
    const std::size_t before = twins.at_server.size();
    twins.client_sends(request("/"));
    twins.run();
    CHECK(twins.is_reset() == is_odd);
    if (is_odd) continue;
    CHECK(twins.at_server.substr(before).ends_with("If-None-Match: \"a\"\r\n\r\n" + request("/")));
    twins.server_sends("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew");
    twins.run();
    CHECK(twins.at_client.ends_with("hiHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew"));
  }
}

TEST_CASE("http: a body that ends with the connection is not stored, and one that is cut short neither") {
  for (const char* head : {"HTTP/1.1 200 OK\r\nETag: \"a\"\r\n\r\nhi", "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\nhi"}) {
    Twins twins(http::kDescriptor, 1);
    twins.on_server_bytes = [&] {
      twins.server_sends(head);
      twins.server_ends();
    };
    twins.client_sends(request("/"));
    twins.run();
    CHECK(twins.at_client == head);
    CHECK(twins.near.lan_ended);
    CHECK(twins.near.module.state_bytes() < 4096);
  }
}
