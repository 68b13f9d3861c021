// SPDX-License-Identifier: Apache-2.0
#include "proxy/listeners/socks5.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <map>

#include "proxy/config/network.h"
#include "proxy/listeners/socks5_records.h"

namespace longhaul::listeners {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kWait = asio::as_tuple(asio::use_awaitable);

// Serves one client until its request is read. Closing the socket ends the handshake.
struct Handshake {
  tcp::socket socket;
  tcp::endpoint client;
  std::string bytes{};  // of the record being read

  void reset() {
    error_code ignored;
    socket.set_option(asio::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
  }
};

// Reads one record and not one byte more: the next bytes belong to the flow. The error is the socket's or the
// parser's.
template <class T>
asio::awaitable<Result<T>> read_record(Handshake& handshake, socks5::Parsing<T> (*parse)(Bytes),
                                       std::size_t (*wanted)(Bytes)) {
  std::string& bytes = handshake.bytes;
  bytes.clear();
  for (;;) {
    auto parsed = parse(as_bytes(bytes));
    if (!parsed) co_return parsed.error();
    if (*parsed) co_return std::move((*parsed)->value);
    const std::size_t have = bytes.size();
    bytes.resize(wanted(as_bytes(bytes)));
    const auto [error, count] = co_await asio::async_read(
        handshake.socket, asio::buffer(bytes.data() + have, bytes.size() - have), kWait);
    bytes.resize(have + count);
    if (error) co_return error;
  }
}

asio::awaitable<void> say_and_close(Handshake& handshake, std::string text) {
  co_await asio::async_write(handshake.socket, asio::buffer(text), kWait);
  // If the client has sent more, closing at once could cause a reset that overtakes the reply.
  error_code error;
  handshake.socket.shutdown(tcp::socket::shutdown_send, error);
  char rest[256];
  while (!error) {
    const auto [read_error, count] = co_await handshake.socket.async_read_some(asio::buffer(rest), kWait);
    error = read_error;
  }
  handshake.socket.close(error);
}

// For browsers and older clients that are configured with this port.
std::string answer_to_other_protocols(char first) {
  if (first == 4) return std::string("\x00\x5b\x00\x00\x00\x00\x00\x00", 8);  // SOCKS4: request rejected
  if (first < 'A' || first > 'Z') return "";
  return "HTTP/1.1 501 Not Implemented\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
         "This port speaks SOCKS5, not HTTP: configure it as a SOCKS proxy.\n";
}

}  // namespace

struct Socks5Listener::Shared {
  Shared(flows::FlowStarter to, const Socks5Limits& with) : start(std::move(to)), limits(with) {}

  flows::FlowStarter start;
  const Socks5Limits limits;
  std::map<std::uint64_t, Handshake*> open;
  std::uint64_t next_id = 0;

  bool takes(const asio::ip::address& client) const {
    const auto of_client = std::count_if(open.begin(), open.end(), [&](const auto& entry) {
      return entry.second->client.address() == client;
    });
    return open.size() < limits.handshakes &&
           static_cast<std::size_t>(of_client) < limits.handshakes_per_source;
  }
  static asio::awaitable<void> shake_hands(std::shared_ptr<Shared> self, tcp::socket socket,
                                           tcp::endpoint client);
  asio::awaitable<void> talk(Handshake& handshake);
};

// At the client's time limit or the listener's end, the socket is closed by other code.
asio::awaitable<void> Socks5Listener::Shared::shake_hands(std::shared_ptr<Shared> self, tcp::socket socket,
                                                          tcp::endpoint client) {
  asio::steady_timer limit(socket.get_executor(), self->limits.handshake);
  Handshake handshake{std::move(socket), client};
  const std::uint64_t id = self->next_id++;
  const struct Registered {
    Registered(Shared& to, std::uint64_t as, Handshake& what) : shared(to), id(as) {
      shared.open[id] = &what;
    }
    ~Registered() { shared.open.erase(id); }
    Shared& shared;
    const std::uint64_t id;
  } registered(*self, id, handshake);
  limit.async_wait([self, id](const error_code& cancelled) {
    const auto found = self->open.find(id);
    if (!cancelled && found != self->open.end()) found->second->reset();
  });
  co_await self->talk(handshake);
}

asio::awaitable<void> Socks5Listener::Shared::talk(Handshake& handshake) {
  using namespace socks5;
  const Result<Greeting> greeting = co_await read_record(handshake, parse_greeting, greeting_bytes);
  if (!greeting) {
    if (greeting.error() == Error::not_socks5)
      co_await say_and_close(handshake, answer_to_other_protocols(handshake.bytes[0]));
    co_return;
  }
  if (!greeting->offers_no_authentication) {
    co_await say_and_close(handshake, std::string(kNoAcceptableMethod));
    co_return;
  }
  const std::string chosen(kNoAuthentication);
  const auto [write_error, written] =
      co_await asio::async_write(handshake.socket, asio::buffer(chosen), kWait);
  if (write_error) co_return;
  Result<Request> request = co_await read_record(handshake, parse_request, request_bytes);
  std::optional<Reply> refusal;
  if (!request) {
    if (request.error() == Error::bad_address_type) refusal = Reply::address_type_not_supported;
    if (request.error() == Error::bad_request) refusal = Reply::general_failure;
    if (!refusal) co_return;
  } else if (request->command != static_cast<std::uint8_t>(Command::connect)) {
    refusal = Reply::command_not_supported;
  }
  if (refusal) {
    co_await say_and_close(handshake, reply_text(*refusal));
    co_return;
  }
  if (!handshake.socket.is_open()) co_return;
  flows::Accepted accepted{
      .socket = std::move(handshake.socket),
      .client = handshake.client,
      .destination = std::move(request->destination),
      .origin = flows::Origin::socks,
      .answer = [](flows::ConnectOutcome outcome) { return reply_text(reply_for(outcome)); }};
  start(std::move(accepted));
}

Socks5Listener::Socks5Listener(asio::io_context& io, const config::HostPort& listen, flows::FlowStarter start,
                               net::AcceptLoop::HasRoom has_room, Socks5Limits limits)
    : shared_(std::make_shared<Shared>(std::move(start), limits)),
      loop_(
          net::open_listener(io, listen, "[socks] listen"),
          [shared = shared_](tcp::socket socket, tcp::endpoint client) {
            client.address(config::unmapped(client.address()));
            const auto executor = socket.get_executor();
            asio::co_spawn(executor, Shared::shake_hands(shared, std::move(socket), client), asio::detached);
          },
          [shared = shared_, has_room = std::move(has_room)](const asio::ip::address& client) {
            return shared->takes(config::unmapped(client)) && (!has_room || has_room(client));
          }) {}

Socks5Listener::~Socks5Listener() {
  shared_->start = [](const flows::Accepted&) {};
  for (const auto& [id, handshake] : shared_->open) handshake->reset();
}

std::size_t Socks5Listener::handshakes() const { return shared_->open.size(); }

}  // namespace longhaul::listeners
