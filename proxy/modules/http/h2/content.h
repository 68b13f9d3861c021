// SPDX-License-Identifier: Apache-2.0
// The content of requests (up) and responses (down) on its way between two connections: how much of it waits
// here, and when its sender may send more: when it was sent on, or is no longer needed.
#pragma once
#include "proxy/modules/http/h2/exchanges.h"

namespace longhaul::http::h2 {

class Content {
 public:
  // With the client and with the server; both outlive this.
  Content(Session& client, Session& server) : client_(client), server_(server) {}

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
  void on_sent_down(const Exchange& exchange, std::size_t bytes) {
    if (exchange.is_from_store) return;
    down_bytes_ -= bytes;
    server_.consumed(exchange.server, bytes);
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
  Session& client_;
  Session& server_;
  std::uint64_t up_bytes_ = 0, down_bytes_ = 0;
};

}  // namespace longhaul::http::h2
