// SPDX-License-Identifier: Apache-2.0
// The far half's connection with a server of libssl, through its handshake.
#pragma once
#include "proxy/modules/tls/upstream.h"
#include "tests/proxy/modules/tls/ends.h"

namespace longhaul::tls {

struct Shaken {
  // As a client asks that offers these protocols.
  Shaken(const World& world, const Entry& entry, const std::string& protocols)
      : context(world.server_context(world.real)),
        server(context.get(), false),
        upstream(entry.to_server.get(), "a.corp", std::as_bytes(std::span(protocols)), false) {
    for (int rounds = 0; rounds < 10 && !(done && server.is_up); ++rounds) {
      if (!done) done = upstream.shake_hands() == Upstream::Next::done;
      deliver();
    }
    REQUIRE(done);
    REQUIRE(server.is_up);
  }
  // Both ways, what each has said so far.
  void deliver() {
    const Slice slice = upstream.leg().drain();
    std::string said(reinterpret_cast<const char*>(slice.bytes().data()), slice.size());
    give(said);
    const std::string answer = server.out();
    upstream.leg().feed(std::as_bytes(std::span(answer)));
  }
  // To the server.
  void give(std::string said) { server.take(said); }

  Context context;
  End server;
  Upstream upstream;
  bool done = false;
};

}  // namespace longhaul::tls
