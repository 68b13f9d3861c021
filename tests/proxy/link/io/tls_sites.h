// SPDX-License-Identifier: Apache-2.0
// Two sites with keys of their own, and TLS connections between them over loopback, for tests of what links
// do with connections. The tests say what each site is asked for.
#pragma once
#include <memory>

#include "proxy/identity/keygen.h"
#include "proxy/link/io/link_shared.h"
#include "proxy/link/io/tls_connection.h"
#include "proxy/loopback.h"
#include "proxy/temporary_folder.h"

namespace longhaul::link::testing {

namespace asio = boost::asio;
using longhaul::testing::operator&&;
using longhaul::testing::SocketPair;
using namespace std::chrono_literals;

// What the links of one daemon share.
struct TlsSite {
  TlsSite(asio::io_context& loop, const std::string& name, std::shared_ptr<KeyLog> key_log = nullptr)
      : io(loop), key(identity::keygen(name, folder.path())), tls(load(key), std::move(key_log)) {
    shared.site = name;
  }
  static identity::Identity load(const identity::Made& made) {
    return identity::load(config::Identity{made.certificate, made.private_key});
  }
  // As the other site has it in its configuration.
  config::Peer as_peer() const { return {.name = shared.site, .fingerprints = {key.fingerprint}}; }

  asio::io_context& io;
  TemporaryFolder folder;
  identity::Made key;
  TlsContext tls;
  config::Link config;
  CreditPool pool{64 << 20, 1024};
  RetainedBudget retained{64 << 20};
  LinkShared shared{.io = io,
                    .tls = tls,
                    .config = config,
                    .site = {},
                    .preshared = {},
                    .pool = pool,
                    .retained = retained,
                    .allowed = {},
                    .max_streams = 1024};
};

struct TlsPair {
  TlsConnection dialler, acceptor;
};

// Any key is accepted.
inline TlsConnection connection_of(asio::ip::tcp::socket socket, const TlsSite& site, Side side) {
  return {std::move(socket), site.tls, side,
          [](const std::string&) { return std::optional(TlsEngine::KnownKey{}); }};
}

inline asio::awaitable<TlsPair> connected(TlsSite& dialler, TlsSite& acceptor) {
  SocketPair sockets = co_await longhaul::testing::socket_pair();
  TlsPair pair{connection_of(std::move(sockets.near), dialler, Side::dialler),
               connection_of(std::move(sockets.far), acceptor, Side::acceptor)};
  const auto [here, there] = co_await (pair.dialler.handshake(10s) && pair.acceptor.handshake(10s));
  REQUIRE((here && there));
  co_return pair;
}

// Until `done`; a test that waits for what never comes fails after half a minute (longhaul::testing::run).
template <class Done>
asio::awaitable<void> until(Done done) {
  asio::steady_timer soon(co_await asio::this_coro::executor);
  while (!done()) {
    soon.expires_after(1ms);
    co_await soon.async_wait(asio::use_awaitable);
  }
}

}  // namespace longhaul::link::testing
