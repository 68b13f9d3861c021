// SPDX-License-Identifier: Apache-2.0
// Streams of CONNECT, such as WebSockets (RFC 8441): when they are offered to the client, and how they are cut off.
#include <nghttp2/nghttp2.h>

#include <utility>

#include "proxy/modules/http/h2/streams.h"

namespace longhaul::http::h2 {

// The server's SETTINGS come after this half's own, so the client learns it from a second frame. A server that
// takes its offer back breaks section 3, and loses its connection to the library.
void Streams::offer_tunnels() {
  if (offers_tunnels_ || !server_.peer_takes_tunnels()) return;
  offers_tunnels_ = true;
  client_.announce({{NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1}}, 0);
}

// What a tunnel carried before the reset may be all that the program needs (a WebSocket's Close frame), so it is sent
// first, as far as the windows allow. An ordinary reset overtakes the content, and a request that is still unsent.
void Streams::reset_client(Exchange& exchange, std::uint32_t error) {
  if (exchange.is_tunnel && exchange.down.bytes() > 0)
    resets_down_.emplace_back(exchange.client, error);
  else
    client_.reset(exchange.client, error);
}

void Streams::reset_server(Exchange& exchange, std::uint32_t error) {
  if (exchange.is_tunnel && exchange.up.bytes() > 0)
    resets_up_.emplace_back(exchange.server, error);
  else
    server_.reset(exchange.server, error);
}

// Less than enough: everything else is sent that may be now.
void Streams::to_client(Buffer& out, std::size_t enough) {
  client_.drain(out, enough);
  if (out.size() >= enough || resets_down_.empty()) return;
  for (const auto& [stream, error] : std::exchange(resets_down_, {}))
    if (const Exchange* exchange = of_client(stream); exchange && exchange->client != 0) client_.reset(stream, error);
  client_.drain(out, enough);
}

void Streams::to_server(Buffer& out, std::size_t enough) {
  server_.drain(out, enough);
  if (out.size() >= enough || resets_up_.empty()) return;
  for (const auto& [stream, error] : std::exchange(resets_up_, {}))
    if (of_server(stream)) server_.reset(stream, error);
  server_.drain(out, enough);
}

}  // namespace longhaul::http::h2
