// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/tunnel_resets.h"

#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

using Of = TunnelResets::Of;

// A response of `content` bytes that is cut off, towards a client with a window of 65,535.
struct CutOff {
  Peer server{Session::Role::server}, client{Session::Role::client};
  TunnelResets resets{server.session};
  Source content;
  StreamId stream = 0;

  explicit CutOff(std::size_t bytes) {
    server.session.announce({}, 0);
    client.session.announce({}, 0);
    client.reads = false;
    stream = *client.session.request(request("/"), nullptr);
    std::string said = client.out();
    REQUIRE(server.take(said));
    server.session.respond(stream, response("200"), &content);
    content.add_copy(bytes_of(std::string(bytes, 'x')));
    server.session.resume(stream);
  }
  // What the client gets at once, of that many bytes.
  void deliver(std::size_t enough = 1 << 20, bool goes_on = true) {
    Buffer out;
    resets.drain(out, enough, [&](StreamId each) { return goes_on && each == stream; });
    std::string said = text_of(out);
    REQUIRE(client.take(said));
  }
};

TEST_CASE("http/2 tunnel resets: what a tunnel carried before comes before its reset") {
  CutOff tunnel(10'000);
  tunnel.resets.reset(tunnel.stream, errors::cancel, Of::tunnel, tunnel.content);
  tunnel.deliver();
  CHECK(tunnel.client.messages[tunnel.stream].content.size() == 10'000);
  CHECK(tunnel.client.messages[tunnel.stream].closed);
  CHECK(tunnel.client.messages[tunnel.stream].error == errors::cancel);
}

TEST_CASE("http/2 tunnel resets: an ordinary reset, and one with nothing unsent, comes at once") {
  CutOff request(10'000);
  request.resets.reset(request.stream, errors::cancel, Of::request, request.content);
  request.deliver();
  CHECK(request.client.messages[request.stream].content.empty());
  CHECK(request.client.messages[request.stream].closed);
  CutOff empty(0);
  empty.resets.reset(empty.stream, errors::cancel, Of::tunnel, empty.content);
  Buffer out;
  empty.server.session.drain(out, 1 << 20);  // without resets.drain()
  std::string said = text_of(out);
  REQUIRE(empty.client.take(said));
  CHECK(empty.client.messages[empty.stream].closed);
}

TEST_CASE("http/2 tunnel resets: a reset waits while there is no room, and not for a closed window") {
  CutOff tunnel(100'000);
  tunnel.resets.reset(tunnel.stream, errors::cancel, Of::tunnel, tunnel.content);
  tunnel.deliver(1'000);
  CHECK_FALSE(tunnel.client.messages[tunnel.stream].closed);
  tunnel.deliver();
  CHECK(tunnel.client.messages[tunnel.stream].content.size() == 65'535);
  CHECK(tunnel.client.messages[tunnel.stream].closed);
}

TEST_CASE("http/2 tunnel resets: a stream that is over meanwhile is not reset") {
  CutOff tunnel(1'000);
  tunnel.resets.reset(tunnel.stream, errors::cancel, Of::tunnel, tunnel.content);
  tunnel.deliver(1 << 20, false);
  CHECK(tunnel.client.messages[tunnel.stream].content.size() == 1'000);
  CHECK_FALSE(tunnel.client.messages[tunnel.stream].closed);
  // Nor later.
  tunnel.deliver();
  CHECK_FALSE(tunnel.client.messages[tunnel.stream].closed);
}

}  // namespace
}  // namespace longhaul::http::h2
