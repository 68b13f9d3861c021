// SPDX-License-Identifier: Apache-2.0
// One coroutine accepts, one serves each connection; every wait has a deadline, so that a client that stops
// reading or writing costs a bounded buffer for a bounded time.
#include "proxy/control/server.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "proxy/log/log.h"

namespace longhaul::control {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kRestAfterAcceptError{
    100};  // no descriptors left: wait until some are closed
constexpr std::chrono::milliseconds kLingerTime{1'000};
constexpr std::size_t kLingerBytes = 64 * 1024;
constexpr std::size_t kLoggedBodyBytes = 200;  // changes, for the log

auto into(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

// The response to an unreadable request; nullopt if the client does not wait for one.
std::optional<Answer> refuse_unreadable(const error_code& error, const ServerLimits& limits) {
  using http::status;
  if (error == http::error::header_limit)
    return refusal(status::request_header_fields_too_large,
                   "the request's header is longer than " + std::to_string(limits.header_bytes) + " bytes");
  if (error == http::error::body_limit)
    return refusal(status::payload_too_large,
                   "the request's body is longer than " + std::to_string(limits.body_bytes) + " bytes");
  const bool malformed = error.category() == make_error_code(http::error::bad_method).category() &&
                         error != http::error::end_of_stream && error != http::error::partial_message;
  if (!malformed) return std::nullopt;  // the client is gone or timed out: the stream is already closed
  return refusal(status::bad_request, "the request is not HTTP/1.1: " + error.message());
}

http::response<http::string_body> make_response(Answer answer, unsigned version) {
  http::response<http::string_body> response{answer.status, version};
  response.set(http::field::content_type, answer.content_type);
  response.set(http::field::cache_control, "no-store");
  // Needed by the status page, harmless otherwise: the page runs only its own script and cannot be framed,
  // and other pages can neither embed nor read any response.
  response.set("X-Content-Type-Options", "nosniff");
  response.set(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'");
  response.set("X-Frame-Options", "DENY");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.set("Cross-Origin-Opener-Policy", "same-origin");
  if (!answer.allow.empty()) response.set(http::field::allow, answer.allow);
  if (answer.asks_for_token) response.set(http::field::www_authenticate, "Bearer realm=\"longhaul\"");
  response.body() = std::move(answer.body);
  response.prepare_payload();
  return response;
}

// Closing a socket with unread bytes resets the connection, and the client loses the response. So this ends
// the sending direction first, and then reads a limited number of bytes.
asio::awaitable<void> close_gently(beast::tcp_stream& stream) {
  error_code error;
  stream.socket().shutdown(tcp::socket::shutdown_send, error);
  stream.expires_after(kLingerTime);
  std::array<char, 4096> discarded;
  for (std::size_t total = 0; !error && total < kLingerBytes;)
    total += co_await stream.async_read_some(asio::buffer(discarded), into(error));
  stream.socket().close(error);
}

template <class Header>
Request make_request(const Header& header, const tcp::socket& socket) {
  Request request;
  request.method = header.method();
  request.target = header.target();
  // Two Host headers could be interpreted differently by two readers: RFC 9112, section 3.2 requires a
  // refusal.
  if (header.count(http::field::host) == 1) request.host = header[http::field::host];
  request.authorization = header[http::field::authorization];
  request.origin = header[http::field::origin];
  request.fetch_site = header["Sec-Fetch-Site"];
  request.fetch_mode = header["Sec-Fetch-Mode"];
  error_code ignored;
  request.local = socket.local_endpoint(ignored);
  request.remote = socket.remote_endpoint(ignored);
  return request;
}

void log_change(const Request& request, const Answer& answer) {
  if (request.method == http::verb::get || request.method == http::verb::head) return;
  const bool done = http::to_status_class(answer.status) == http::status_class::successful;
  const auto method = http::to_string(request.method);
  const auto from = config::to_text({request.remote.address().to_string(), request.remote.port()});
  log::write(done ? log::Level::info : log::Level::warn, "control",
             {{"method", std::string_view(method)},
              {"target", request.target},
              {"from", from},
              {"status", static_cast<unsigned>(answer.status)},
              {"body", std::string_view(request.body).substr(0, kLoggedBodyBytes)}});
}

}  // namespace

Server::Door::Door(asio::io_context& loop, const config::HostPort& listen, std::string_view key)
    : acceptor(loop), rest(loop) {
  try {
    error_code error;
    const auto address = asio::ip::make_address(listen.host, error);
    endpoint = error
                   ? tcp::resolver(loop).resolve(listen.host, std::to_string(listen.port)).begin()->endpoint()
                   : tcp::endpoint{address, listen.port};
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    if (endpoint.address().is_v6())
      acceptor.set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()));
    acceptor.bind(endpoint);
    acceptor.listen();
    endpoint = acceptor.local_endpoint();
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error("the control API cannot listen at " + config::to_text(listen) + ": " +
                             error.code().message() +
                             (error.code() == asio::error::address_in_use
                                  ? "; another longhaul may be running; if not, set [control] " +
                                        std::string(key) + " to a free port"
                                  : ""));
  }
}

Server::Server(asio::io_context& loop, Controlled& daemon, std::string token, const config::HostPort& listen,
               ServerLimits limits)
    : api_(daemon, std::move(token)), limits_(limits), loop_(loop), changed_(loop) {
  doors_.emplace_back(loop, listen, "listen");
  if (!endpoint().address().is_loopback())
    log::warn("control",
              {{"listen", config::to_text(listen)},
               {"warning", "requests from other machines send the token over the network unencrypted"}});
}

tcp::endpoint Server::listen_tls(const config::HostPort& listen, identity::WebContext tls) {
  Door& door = doors_.emplace_back(loop_, listen, "tls_listen");
  door.tls = std::move(tls);
  return door.endpoint;
}

void Server::use(identity::WebContext tls) {
  for (Door& door : doors_)
    if (door.tls) door.tls = tls;
}

asio::awaitable<void> Server::run() {
  accepting_ = doors_.size();
  for (Door& door : doors_) asio::co_spawn(loop_, accept(door), asio::detached);
  while (accepting_ != 0 || !streams_.empty()) {
    changed_.expires_at(asio::steady_timer::time_point::max());
    error_code error;
    co_await changed_.async_wait(into(error));
  }
}

asio::awaitable<void> Server::accept(Door& door) {
  error_code error;
  while (!stopping_) {
    const auto place = streams_.emplace(streams_.end(), loop_);
    co_await door.acceptor.async_accept(place->socket(), into(error));
    if (stopping_ || error) {
      streams_.erase(place);
      if (stopping_ || error == asio::error::operation_aborted) break;
      if (error == asio::error::connection_aborted) continue;
    } else {
      asio::co_spawn(loop_, serve(door, place), asio::detached);
      if (!door.tls) continue;
    }
    door.rest.expires_after(error ? kRestAfterAcceptError : limits_.handshake_rest);
    co_await door.rest.async_wait(into(error));
  }
  --accepting_;
  changed_.cancel();
}

void Server::stop() {
  stopping_ = true;
  error_code ignored;
  for (Door& door : doors_) {
    door.acceptor.close(ignored);
    door.rest.cancel();
  }
  for (auto& stream : streams_) stream.close();
  changed_.cancel();
}

// Always frees its place at the end; `run` waits for the last connection.
asio::awaitable<void> Server::serve(Door& door, Streams::iterator place) {
  ++counters_.connections;
  ++door.connections;
  if (door.connections > limits_.connections) {
    ++counters_.turned_away;
    if (!door.tls) co_await turn_away(*place);
  } else {
    ++counters_.accepted;
    if (door.tls)
      co_await serve_tls(door.tls, *place);
    else
      co_await converse(*place, *place);
  }
  --counters_.connections;
  --door.connections;
  streams_.erase(place);
  changed_.cancel();
}

asio::awaitable<void> Server::serve_tls(identity::WebContext context, Stream& tcp) {
  asio::ssl::stream<Stream&> stream(tcp, *context);
  error_code error;
  tcp.expires_after(limits_.handshake_time);
  co_await stream.async_handshake(asio::ssl::stream_base::server, into(error));
  if (error) co_return;
  co_await converse(stream, tcp);
}

asio::awaitable<void> Server::turn_away(Stream& stream) {
  auto response = make_response(
      refusal(http::status::service_unavailable, "too many connections to the control API"), 11);
  response.set(http::field::retry_after, "1");
  response.keep_alive(false);
  error_code error;
  stream.expires_after(kLingerTime);
  co_await http::async_write(stream, response, into(error));
  if (!error) co_await close_gently(stream);
}

template <class AnyStream>
asio::awaitable<void> Server::converse(AnyStream& stream, Stream& tcp) {
  constexpr bool kTls = !std::is_same_v<AnyStream, Stream>;
  beast::flat_buffer buffer{limits_.header_bytes + limits_.body_bytes};
  for (bool keep = true; keep && !stopping_;) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(limits_.header_bytes);
    parser.body_limit(limits_.body_bytes);
    error_code error;
    tcp.expires_after(limits_.header_time);
    co_await http::async_read_header(stream, buffer, parser, into(error));
    if (error && (!parser.got_some() || stopping_)) break;  // the client has finished, or sent nothing

    std::optional<Answer> answer;
    Request request;
    if (!error) {
      request = make_request(parser.get(), tcp.socket());
      request.tls = kTls;
      answer = api_.refuse(request);
    }
    if (!error && !answer) {
      tcp.expires_after(limits_.body_time);
      co_await http::async_read(stream, buffer, parser, into(error));
    }
    if (error) {
      answer = refuse_unreadable(error, limits_);
      if (!answer) break;
    }
    // If the body was not read to its end, the start of the next request is unknown.
    keep = !error && parser.is_done() && parser.keep_alive();
    ++counters_.requests;
    if (!answer) {
      request.body = std::move(parser.get().body());
      answer = co_await api_.answer(request, counters_);
    }
    if (http::to_status_class(answer->status) == http::status_class::client_error) ++counters_.refused;
    log_change(request, *answer);

    auto response = make_response(std::move(*answer), parser.is_header_done() ? parser.get().version() : 11);
    response.keep_alive(keep);
    if (request.method == http::verb::head) response.body().clear();
    tcp.expires_after(limits_.answer_time);
    co_await http::async_write(stream, response, into(error));
    if (error) co_return;
  }
  if (stopping_) co_return;
  if constexpr (kTls) {
    error_code error;
    tcp.expires_after(kLingerTime);
    co_await stream.async_shutdown(into(error));
  }
  co_await close_gently(tcp);
}

}  // namespace longhaul::control
