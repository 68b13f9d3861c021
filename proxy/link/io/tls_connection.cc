// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/tls_connection.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace longhaul::link {
namespace asio = boost::asio;
using namespace std::chrono_literals;
namespace {

// Closes the socket at the time limit, so that every operation on it completes.
class Deadline {
 public:
  Deadline(asio::ip::tcp::socket& socket, Duration limit) : timer_(socket.get_executor(), limit) {
    timer_.async_wait([&socket, state = state_](boost::system::error_code error) {
      if (error || *state == State::over) return;
      *state = State::passed;
      boost::system::error_code ignored;
      socket.close(ignored);
    });
  }
  // The timer may have expired while its handler is still queued in the loop.
  ~Deadline() { *state_ = State::over; }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  bool passed() const { return *state_ == State::passed; }

 private:
  enum class State : std::uint8_t { running, passed, over };
  std::shared_ptr<State> state_ = std::make_shared<State>(State::running);
  asio::steady_timer timer_;
};

std::string describe(const asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  auto remote = socket.remote_endpoint(error);
  if (error) return "unknown";
  auto shown = remote.address();
  if (shown.is_v6() && shown.to_v6().is_v4_mapped())  // an IPv4 peer at a listener for both families
    shown = asio::ip::make_address_v4(asio::ip::v4_mapped, shown.to_v6());
  std::string address = shown.to_string();
  return (shown.is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(remote.port());
}

// Closing with unread bytes causes a reset (RFC 1122, section 4.2.2.13), which would overtake the last data
// sent.
asio::awaitable<void> close_after_reading(asio::ip::tcp::socket socket) {
  Deadline deadline(socket, 1s);
  std::array<std::byte, 4096> scratch;
  boost::system::error_code error;
  while (!error)
    co_await socket.async_read_some(asio::buffer(scratch), asio::redirect_error(asio::use_awaitable, error));
}

boost::system::error_code timed_out() { return asio::error::timed_out; }

}  // namespace

TlsConnection::TlsConnection(asio::ip::tcp::socket socket, const TlsContext& context, Side side,
                             TlsEngine::FindKey find)
    : socket_(std::move(socket)),
      tls_(std::make_unique<TlsEngine>(context, side, std::move(find))),
      remote_(describe(socket_)),
      side_(side) {}

asio::awaitable<Result<void>> TlsConnection::flush() {
  boost::system::error_code error;
  Buffer out = std::exchange(tls_->outgoing(), {});
  if (!out.empty())
    co_await asio::async_write(socket_, asio::buffer(out), asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return error;
  co_return Result<void>{};
}

asio::awaitable<Result<void>> TlsConnection::receive_some(const HandshakePace* pace) {
  std::array<std::byte, 16 * 1024> scratch;
  boost::system::error_code error;
  std::size_t size = co_await socket_.async_read_some(asio::buffer(scratch),
                                                      asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return error;
  if (pace) co_await pace->turns.next(pace->standing);
  const Duration before = pace ? thread_time() : Duration{};
  // The time limit may have passed while waiting for the turn.
  Result<void> taken = asio::error::operation_aborted;
  if (socket_.is_open()) taken = tls_->receive(std::span(scratch).first(size), plain_);
  if (pace) {
    const Duration processor = thread_time() - before;
    pace->turns.done(processor);
    pace->charge(processor);
  }
  // Even after an error: the alert for the peer may be pending.
  co_await flush();
  if (taken && tls_->closed_by_peer()) co_return boost::system::error_code(asio::error::eof);
  co_return taken;
}

asio::awaitable<Result<void>> TlsConnection::handshake(Duration limit, const HandshakePace* pace) {
  TimePoint start = Clock::now();
  Deadline deadline(socket_, limit);
  if (side_ == Side::dialler)
    if (auto begun = tls_->send({}); !begun) co_return begun;
  for (;;) {
    if (auto sent = co_await flush(); !sent) co_return deadline.passed() ? Result<void>(timed_out()) : sent;
    if (tls_->established()) break;
    // A peer that refuses us ends the connection with its last handshake message: its alert may have arrived.
    if (auto got = co_await receive_some(pace); !got && !tls_->established())
      co_return deadline.passed() ? Result<void>(timed_out()) : got;
  }
  handshake_time_ = Clock::now() - start;
  co_return Result<void>{};
}

asio::awaitable<Result<Frame>> TlsConnection::read_frame(Duration limit) {
  Deadline deadline(socket_, limit);
  boost::system::error_code ended;
  for (;;) {
    auto parsed = parse_frame(plain_);
    if (!parsed) co_return parsed.error();
    if (*parsed) {
      std::optional<Frame> frame = std::move((*parsed)->frame);
      plain_.erase(plain_.begin(), plain_.begin() + static_cast<std::ptrdiff_t>((*parsed)->consumed));
      if (frame && !std::holds_alternative<StreamFrame>(*frame)) co_return std::move(*frame);
      if (frame) co_return LinkError::malformed_frame;  // it borrows, which is not allowed here
      continue;
    }
    if (ended) co_return ended;
    if (auto got = co_await receive_some(); !got) {
      if (deadline.passed()) co_return timed_out();
      ended = got.error();  // a last frame, such as a refusal, may have arrived with the end
    }
  }
}

asio::awaitable<Result<void>> TlsConnection::write_frame(const Frame frame) {
  Buffer plain;
  link::write_frame(frame, plain);
  if (auto sealed = tls_->send(plain); !sealed) co_return sealed;
  co_return co_await flush();
}

void TlsConnection::cut() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void TlsConnection::end() {
  boost::system::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  auto executor = socket_.get_executor();
  asio::co_spawn(executor, close_after_reading(std::move(socket_)), asio::detached);
}

void TlsConnection::refuse(CloseCode code, std::string text) {
  boost::system::error_code ignored;
  Buffer plain;
  link::write_frame(CloseFrame{code, std::move(text)}, plain);
  if (tls_->established() && tls_->send(plain)) {
    tls_->close();
    socket_.non_blocking(true, ignored);
    socket_.write_some(asio::buffer(tls_->outgoing()), ignored);
  }
  end();
}

}  // namespace longhaul::link
