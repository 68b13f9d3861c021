// SPDX-License-Identifier: Apache-2.0
// Coroutines and socket pairs on loopback for tests, with one deadline for everything that waits. Leaves the
// checks to the tests.
#pragma once
#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace longhaul::testing {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

inline constexpr auto kSays = asio::as_tuple(asio::use_awaitable);

// Runs the coroutine to its end on this thread; what it throws comes out here. A test that waits for
// something that never comes fails after ten seconds.
inline void run(asio::io_context& io, asio::awaitable<void> body) {
  std::exception_ptr thrown;
  bool ended = false;
  asio::co_spawn(io, std::move(body), [&](std::exception_ptr e) {
    thrown = e;
    ended = true;
    io.stop();
  });
  io.run_for(10s);
  io.restart();
  if (thrown) std::rethrow_exception(thrown);
  if (!ended) FAIL("the test waited ten seconds for something that did not come");
}

struct SocketPair {
  tcp::socket near;  // connected
  tcp::socket far;   // accepted
};

inline asio::awaitable<SocketPair> socket_pair(const char* address = "127.0.0.1") {
  const auto executor = co_await asio::this_coro::executor;
  tcp::acceptor acceptor(executor, tcp::endpoint(asio::ip::make_address(address), 0));
  tcp::socket near(executor);
  near.open(acceptor.local_endpoint().protocol());
  co_await near.async_connect(acceptor.local_endpoint(), asio::use_awaitable);
  tcp::socket far = co_await acceptor.async_accept(asio::use_awaitable);
  co_return SocketPair{std::move(near), std::move(far)};
}

inline asio::awaitable<std::string> read_exactly(tcp::socket& socket, std::size_t size) {
  std::string text(size, '\0');
  const auto [error, count] = co_await asio::async_read(socket, asio::buffer(text), kSays);
  text.resize(count);
  co_return text;
}

// Everything up to the end; `error` is eof for an ordinary one, connection_reset for a reset.
struct Rest {
  std::string text;
  error_code error;
};
inline asio::awaitable<Rest> read_all(tcp::socket& socket) {
  Rest rest;
  std::string buffer(65536, '\0');
  for (;;) {
    const auto [error, count] = co_await socket.async_read_some(asio::buffer(buffer), kSays);
    rest.text.append(buffer, 0, count);
    if (error) {
      rest.error = error;
      co_return rest;
    }
  }
}

inline asio::awaitable<void> write(tcp::socket& socket, std::string text) {
  co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
}

inline void reset(tcp::socket& socket) {
  socket.set_option(asio::socket_base::linger(true, 0));
  socket.close();
}

// Bytes that no short period repeats, so that a lost or doubled piece shows.
inline std::string pattern(std::size_t size, std::uint32_t seed = 1) {
  std::string text(size, '\0');
  for (char& byte : text) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<char>(seed >> 24);
  }
  return text;
}

}  // namespace longhaul::testing
