// SPDX-License-Identifier: Apache-2.0
#include "proxy/loopback.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <exception>

namespace longhaul::testing {

// It only ends what would hang: nothing is measured by it, and sanitized builds share a busy host.
constexpr auto kPatience = 30s;

void run(asio::io_context& io, asio::awaitable<void> body) {
  std::exception_ptr thrown;
  bool ended = false;
  asio::co_spawn(io, std::move(body), [&](std::exception_ptr e) {
    thrown = e;
    ended = true;
    io.stop();
  });
  io.run_for(kPatience);
  io.restart();
  if (thrown) std::rethrow_exception(thrown);
  if (!ended) FAIL("the test waited half a minute for something that did not come");
}

asio::awaitable<void> both(asio::awaitable<void> a, asio::awaitable<void> b) {
  co_await asio::experimental::awaitable_operators::operator&&(std::move(a), std::move(b));
}

asio::awaitable<std::size_t> first(asio::awaitable<void> a, asio::awaitable<void> b) {
  const auto ended = co_await asio::experimental::awaitable_operators::operator||(std::move(a), std::move(b));
  co_return ended.index();
}

asio::awaitable<SocketPair> socket_pair(const char* address) {
  const auto executor = co_await asio::this_coro::executor;
  tcp::acceptor acceptor(executor, tcp::endpoint(asio::ip::make_address(address), 0));
  tcp::socket near(executor);
  near.open(acceptor.local_endpoint().protocol());
  co_await near.async_connect(acceptor.local_endpoint(), asio::use_awaitable);
  tcp::socket far = co_await acceptor.async_accept(asio::use_awaitable);
  co_return SocketPair{std::move(near), std::move(far)};
}

asio::awaitable<std::string> read_exactly(tcp::socket& socket, std::size_t size) {
  std::string text(size, '\0');
  const auto [error, count] = co_await asio::async_read(socket, asio::buffer(text), kSays);
  text.resize(count);
  co_return text;
}

asio::awaitable<Rest> read_all(tcp::socket& socket) {
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

asio::awaitable<void> write(tcp::socket& socket, std::string text) {
  co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
}

void reset(tcp::socket& socket) {
  socket.set_option(asio::socket_base::linger(true, 0));
  socket.close();
}

asio::awaitable<std::size_t> send_and_end(tcp::socket& socket, std::string text) {
  const std::size_t size = text.size();
  co_await write(socket, std::move(text));
  socket.shutdown(tcp::socket::shutdown_send);
  co_return size;
}

std::string pattern(std::size_t size, std::uint32_t seed) {
  std::string text(size, '\0');
  for (char& byte : text) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<char>(seed >> 24);
  }
  return text;
}

}  // namespace longhaul::testing
