// SPDX-License-Identifier: Apache-2.0
// The LAN side of a flow, and the client or server at the other end of its socket, over loopback.
#pragma once
#include <catch2/catch.hpp>

#include "proxy/flows/lan_side.h"
#include "tests/proxy/loopback.h"

namespace longhaul::flows {
using namespace longhaul::testing;

struct LanUser final : LanSide::User {
  void on_lan_readable() override { ++readable; }
  void on_lan_writable() override { ++writable; }
  void on_lan_failed() override { ++failed; }
  int readable = 0, writable = 0, failed = 0;
};

// A flow's socket and the client at its other end.
struct LanPair {
  asio::io_context io;
  LanUser user;
  FlowBytes bytes;
  tcp::socket client{io};
  std::unique_ptr<LanSide> lan;

  LanPair() {
    run(io, [](LanPair& at) -> asio::awaitable<void> {
      SocketPair pair = co_await socket_pair();
      at.client = std::move(pair.near);
      at.lan = std::make_unique<LanSide>(std::move(pair.far), at.bytes, at.user);
    }(*this));
    lan->prepare();
  }
  void until(const std::function<bool()>& done) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!done() && std::chrono::steady_clock::now() < limit) {
      io.restart();
      io.run_one_for(100ms);
    }
    REQUIRE(done());
  }
  // More than the two kernels take.
  void fill() {
    SliceQueue queue;
    queue.push_copy(Bytes(Buffer(kReadBytes)));
    lan->down = LanSide::Pump::running;
    for (;;) {
      const auto written = lan->send(queue);
      if (written.sent == LanSide::Sent::waits) return;
      REQUIRE(written.sent == LanSide::Sent::some);
    }
  }
  void drain_client() {
    client.non_blocking(true);
    std::array<char, 65536> room;
    error_code error;
    while (client.read_some(asio::buffer(room), error) > 0) {
    }
  }
};

}  // namespace longhaul::flows
