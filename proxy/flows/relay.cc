// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/relay.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>

#include "proxy/flows/reset_on_close.h"

namespace longhaul::flows {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

constexpr auto kWait = asio::as_tuple(asio::use_awaitable);
// How much is moved for one flow before the loop serves others: about a millisecond of copying.
constexpr std::size_t kTurnBytes = 8 << 20;
// How long bytes already read from a side that reset may take to reach the other before the reset follows.
constexpr auto kDrainLimit = 1s;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Reads and clears. Only this distinguishes a reset from an ordinary end once both ends were sent.
bool has_failed(tcp::socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error != 0;
}

// When the socket has room again, the content of a pipe is sent as a burst of a third of the socket's buffer,
// which may overflow the queue of a long line. Pacing by the kernel, at twice the window per round trip,
// avoids that. On a LAN it would only cost time: it spreads a block that is smaller than the window over half
// a round trip, which delays a client that waits for each block. Returns true when it is decided.
bool pace_on_wan(tcp::socket& socket) {
  constexpr std::uint32_t kLanMicroseconds = 300;
  constexpr int kManyBytes = 128 << 10;
  int under_way = 0;
  if (::ioctl(socket.native_handle(), SIOCOUTQ, &under_way) != 0) return true;
  if (under_way < kManyBytes) return false;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  if (info.tcpi_rtt < kLanMicroseconds) return true;
  // Any limit except "none" makes the kernel pace (socket(7)); no line reaches this one.
  const std::uint64_t bytes_per_second = 1'000'000'000'000;
  ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second,
               sizeof bytes_per_second);
  return true;
}

bool is_drained(tcp::socket& socket) {
  int unacknowledged = 0;
  return ::ioctl(socket.native_handle(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

}  // namespace

asio::awaitable<void> close_with_reset(tcp::socket& socket) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  const auto deadline = std::chrono::steady_clock::now() + kDrainLimit;
  for (auto pause = 1ms; !is_drained(socket) && std::chrono::steady_clock::now() < deadline; pause *= 2) {
    timer.expires_after(pause);
    if (const auto [error] = co_await timer.async_wait(kWait); error) break;
  }
  error_code ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

struct Relay::Direction {
  tcp::socket& from;
  tcp::socket& to;
  std::uint64_t& bytes_in;
  std::uint64_t& bytes_out;
  const RelayEnd from_reset;
  const RelayEnd to_reset;
  Bytes first{};       // sent before the bytes that are read
  bool ended = false;  // the end has been passed on
  bool pacing_settled = false;
  bool watches_source =
      true;  // an error event on `from` means an error (but not with urgent data, or after its end)
};

struct Relay::Join {
  Direction up;
  Direction down;
  std::optional<RelayEnd> end = std::nullopt;  // set once, by the first direction that detects it

  bool both_ended() const { return up.ended && down.ended; }
  void stop_waiting() {
    error_code ignored;
    up.from.cancel(ignored);
    up.to.cancel(ignored);
  }
  void finish(RelayEnd how) {
    if (!end) end = how;
    stop_waiting();
  }
};

namespace {

enum class Moved { some, nothing_there, no_room, end_of_stream, source_failed, sink_failed };

// Copies without holding bytes: peeks at the data, sends it, and removes the sent part from the receive
// queue.
Moved copy_once(int from, int to, std::byte* buffer, std::size_t size, std::size_t& moved) {
  moved = 0;
  const ssize_t seen = ::recv(from, buffer, size, MSG_PEEK);
  if (seen == 0) return Moved::end_of_stream;
  if (seen < 0) return would_block() ? Moved::nothing_there : Moved::source_failed;
  const ssize_t sent = ::send(to, buffer, static_cast<std::size_t>(seen), MSG_NOSIGNAL);
  if (sent < 0) return would_block() ? Moved::no_room : Moved::sink_failed;
  moved = static_cast<std::size_t>(sent);
  ::recv(from, nullptr, moved, MSG_TRUNC);  // tcp(7): discards without copying
  return Moved::some;
}

Moved send_first(Bytes& first, int to, std::size_t& moved) {
  const ssize_t sent = ::send(to, first.data(), first.size(), MSG_NOSIGNAL);
  moved = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  first = first.subspan(moved);
  if (sent > 0) return Moved::some;
  return would_block() ? Moved::no_room : Moved::sink_failed;
}

Moved fill(int from, const Pipe& pipe, std::size_t& moved) {
  const ssize_t taken = ::splice(from, nullptr, pipe.write_end(), nullptr, pipe.capacity_bytes(),
                                 SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  moved = taken > 0 ? static_cast<std::size_t>(taken) : 0;
  if (taken > 0) return Moved::some;
  if (taken == 0) return Moved::end_of_stream;
  return would_block() ? Moved::nothing_there : Moved::source_failed;
}

Moved empty(const Pipe& pipe, int to, std::size_t held, std::size_t& moved) {
  const ssize_t sent =
      ::splice(pipe.read_end(), nullptr, to, nullptr, held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  moved = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  if (sent > 0) return Moved::some;
  return would_block() ? Moved::no_room : Moved::sink_failed;
}

}  // namespace

// Relays one direction, until its end, a reset of either side, or the end of the relay. When the other
// direction has seen a reset of `from`, earlier data of `from` is still passed on as far as possible without
// waiting.
asio::awaitable<void> Relay::pump(Join& join, Direction& direction) {
  co_await asio::this_coro::throw_if_cancelled(false);
  const int from = direction.from.native_handle();
  const int to = direction.to.native_handle();
  Pipe pipe;             // held from readiness until all is passed on
  std::size_t held = 0;  // bytes in it
  std::size_t turn = 0;  // bytes moved since the loop last served others
  bool woken = false;    // there is something to read, or was
  while (!direction.ended) {
    Moved what;
    std::size_t moved = 0;
    if (!direction.first.empty()) {
      what = send_first(direction.first, to, moved);
      direction.bytes_out += moved;
    } else if (held == 0) {
      if (!pipe) pipe = pipes_.lend();
      what = Moved::end_of_stream;
      if (pipe) what = fill(from, pipe, held);
      direction.bytes_in += held;
      // Before an urgent byte, splice behaves as if there were no data, or as at the end; a read shows which
      // it is.
      if (what == Moved::end_of_stream || (what == Moved::nothing_there && woken)) {
        if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kBufferBytes);
        what = copy_once(from, to, buffer_.get(), kBufferBytes, moved);
        direction.bytes_in += moved;
        direction.bytes_out += moved;
      }
      woken = false;
    } else {
      what = empty(pipe, to, held, moved);
      held -= moved;
      direction.bytes_out += moved;
    }
    turn += moved;

    error_code error;
    switch (what) {
      case Moved::some:
        if (turn < kTurnBytes || join.end) break;
        turn = 0;
        co_await asio::post(asio::use_awaitable);
        break;
      case Moved::nothing_there:
        pipes_.take_back(std::move(pipe));
        if (join.end) co_return;
        turn = 0;
        std::tie(error) = co_await direction.from.async_wait(tcp::socket::wait_read, kWait);
        woken = !error;
        break;
      case Moved::no_room:
        if (join.end) co_return;
        if (!direction.pacing_settled) direction.pacing_settled = pace_on_wan(direction.to);
        turn = 0;
        if (!direction.watches_source) {
          std::tie(error) = co_await direction.to.async_wait(tcp::socket::wait_write, kWait);
          break;
        } else {  // `from` is not read meanwhile, so watch for its reset
          const auto [order, room_error, source_error] =
              co_await asio::experimental::make_parallel_group(
                  direction.to.async_wait(tcp::socket::wait_write, asio::deferred),
                  direction.from.async_wait(tcp::socket::wait_error, asio::deferred))
                  .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
          if (order[0] == 0) {
            error = room_error;
          } else if (source_error) {
            error = source_error;
          } else if (has_failed(direction.from)) {
            join.finish(direction.from_reset);
          } else {
            direction.watches_source = false;
          }
        }
        break;
      case Moved::end_of_stream: {
        if (join.end) co_return;  // a reset that another call has consumed looks like this
        error_code gone;          // then the other direction sees it too
        direction.to.shutdown(tcp::socket::shutdown_send, gone);
        direction.ended = true;
        break;
      }
      case Moved::source_failed:
        join.finish(direction.from_reset);
        co_return;
      case Moved::sink_failed:
        join.finish(direction.to_reset);
        co_return;
    }
    if (error && !join.end) {
      join.finish(RelayEnd::cancelled);
      co_return;
    }
    if (join.end && *join.end != direction.from_reset) co_return;
  }
  pipes_.take_back(std::move(pipe));
  if (join.both_ended()) {
    join.stop_waiting();  // the other direction's watch, below
    co_return;
  }
  while (!join.end && !join.both_ended()) {
    const auto [error] = co_await direction.from.async_wait(tcp::socket::wait_error, kWait);
    if (join.end || join.both_ended()) co_return;
    if (error) {
      join.finish(RelayEnd::cancelled);
    } else if (has_failed(direction.from)) {
      join.finish(direction.from_reset);
    } else {
      co_return;
    }
  }
}

asio::awaitable<RelayEnd> Relay::run(tcp::socket& client, tcp::socket& server, FlowBytes& bytes,
                                     Bytes first) {
  using namespace asio::experimental::awaitable_operators;
  co_await asio::this_coro::throw_if_cancelled(false);
  error_code error;
  client.native_non_blocking(true, error);
  if (!error) server.native_non_blocking(true, error);
  for (tcp::socket* socket : {&client, &server}) reset_on_close(socket->native_handle(), true);
  Join join{
      .up = {client, server, bytes.lan_in, bytes.wan_out, RelayEnd::client_reset, RelayEnd::server_reset,
             first},
      .down = {server, client, bytes.wan_in, bytes.lan_out, RelayEnd::server_reset, RelayEnd::client_reset}};
  if (error) {
    join.end = RelayEnd::cancelled;
  } else {
    co_await (pump(join, join.up) && pump(join, join.down));
  }
  const RelayEnd end = join.end.value_or(RelayEnd::finished);
  if (end == RelayEnd::client_reset) co_await close_with_reset(server);
  if (end == RelayEnd::server_reset) co_await close_with_reset(client);
  if (end == RelayEnd::finished)
    for (tcp::socket* socket : {&client, &server}) reset_on_close(socket->native_handle(), false);
  client.close(error);
  server.close(error);
  co_return end;
}

}  // namespace longhaul::flows
