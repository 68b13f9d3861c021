// SPDX-License-Identifier: Apache-2.0
// The content of requests (up) and responses (down) on its way between two connections: how much of it waits
// here, and when its sender may send more: when it was sent on, or is no longer needed. The windows for a
// client that reads what arrives grow, so that they do not limit a long line.
#pragma once
#include "proxy/modules/http/h2/exchanges.h"

namespace longhaul::http::h2 {

class Content {
 public:
  // To which the windows for responses may grow, in bytes.
  struct Most {
    std::int32_t stream = 0, together = 0;
  };

  // With the client and with the server; both outlive this.
  Content(Session& client, Session& server, Most most) : client_(client), server_(server), most_(most) {}

  void take_up(Exchange& exchange, Bytes bytes) {
    exchange.up.add_copy(bytes);
    up_bytes_ += bytes.size();
    server_.resume(exchange.server);
  }
  void take_down(Exchange& exchange, Bytes bytes) {
    exchange.down.add_copy(bytes);
    down_bytes_ += bytes.size();
    client_.resume(exchange.client);
  }

  void on_sent_up(const Exchange& exchange, std::size_t bytes) {
    up_bytes_ -= bytes;
    client_.consumed(exchange.client, bytes);
  }
  // What the store had was not received.
  void on_sent_down(Exchange& exchange, std::size_t bytes) {
    if (exchange.is_from_store) return;
    down_bytes_ -= bytes;
    server_.consumed(exchange.server, bytes);
    grow_for(exchange, bytes);
  }

  // The server, or the client, does not want the rest; the other may send as much more on other streams.
  void drop_up(Exchange& exchange) {
    on_sent_up(exchange, static_cast<std::size_t>(exchange.up.bytes()));
    exchange.up.clear();
  }
  void drop_down(Exchange& exchange) {
    on_sent_down(exchange, static_cast<std::size_t>(exchange.down.bytes()));
    exchange.down.clear();
  }
  // Both connections are done with it.
  void forget(const Exchange& exchange) { up_bytes_ -= exchange.up.bytes(); }

  // That wait here; down without those of the store.
  std::size_t up_bytes() const { return static_cast<std::size_t>(up_bytes_); }
  std::size_t down_bytes() const { return static_cast<std::size_t>(down_bytes_); }

 private:
  // The window grows after a quarter of it: a server learns of each half of a window that was read, but a
  // round trip later, when it may have used up the rest.
  void grow_for(Exchange& exchange, std::size_t bytes) {
    const std::int32_t window = server_.window(exchange.server);
    if (window >= most_.stream) return;
    const auto size = static_cast<std::uint64_t>(window);
    // A client is slow if half a window waits for it. Less may arrive at once when a loss is repaired.
    exchange.read_at_once = exchange.down.bytes() > size / 2 ? 0 : exchange.read_at_once + bytes;
    if (exchange.read_at_once < size / 4) return;
    exchange.read_at_once = 0;
    server_.grow(exchange.server, most_.stream, most_.together);
  }

  Session& client_;
  Session& server_;
  Most most_;
  std::uint64_t up_bytes_ = 0, down_bytes_ = 0;
};

}  // namespace longhaul::http::h2
