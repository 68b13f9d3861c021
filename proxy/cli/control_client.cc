// SPDX-License-Identifier: Apache-2.0
// Each call runs a private event loop until the response arrives or the time limit expires.
#include "proxy/cli/control_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <exception>
#include <utility>

#include "proxy/control/token.h"

namespace longhaul::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace json = boost::json;
using boost::system::error_code;
using config::TextError;
using config::TextResult;

constexpr std::size_t kMostAnswerBytes = 16u << 20;

auto into(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

TextError fail(std::string sentence) { return {std::move(sentence)}; }

}  // namespace

Daemon daemon_of(const config::Config& config) {
  return {.address = config.control.listen, .token_file = config.state_dir / config.control.token_file};
}

ControlClient::ControlClient(Daemon daemon) : daemon_(std::move(daemon)) {}

TextResult<json::value> ControlClient::get(const std::string& target) {
  return ask(http::verb::get, target, {});
}

TextResult<json::value> ControlClient::post(const std::string& target, const json::value& body) {
  return ask(http::verb::post, target, json::serialize(body));
}

error_code ControlClient::run(asio::awaitable<error_code> work) {
  error_code result;
  std::exception_ptr failure;
  asio::co_spawn(loop_, std::move(work), [&](std::exception_ptr thrown, error_code error) {
    failure = thrown;
    result = error;
  });
  loop_.restart();
  loop_.run();
  if (failure) std::rethrow_exception(failure);
  return result;
}

asio::awaitable<error_code> ControlClient::connect() {
  error_code error;
  asio::ip::tcp::resolver resolver(loop_);
  const auto found = co_await resolver.async_resolve(daemon_.address.host,
                                                     std::to_string(daemon_.address.port), into(error));
  if (error) co_return error;
  stream_.expires_after(daemon_.patience);
  co_await stream_.async_connect(found, into(error));
  co_return error;
}

asio::awaitable<error_code> ControlClient::exchange(http::verb method, std::string target, std::string body,
                                                    std::string token, Reply& reply) {
  http::request<http::string_body> request{method, target, 11};
  // The daemon checks the Host header against its address, not against names.
  const auto remote = stream_.socket().remote_endpoint();
  request.set(http::field::host, config::to_text({remote.address().to_string(), remote.port()}));
  request.set(http::field::user_agent, "longhaul");
  if (!token.empty()) request.set(http::field::authorization, "Bearer " + token);
  if (method != http::verb::get) request.set(http::field::content_type, "application/json");
  request.body() = std::move(body);
  request.prepare_payload();
  error_code error;
  stream_.expires_after(daemon_.patience);
  co_await http::async_write(stream_, request, into(error));
  if (error) co_return error;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMostAnswerBytes);
  co_await http::async_read(stream_, buffer_, parser, into(error));
  if (error) co_return error;
  connected_ = parser.keep_alive();
  reply = {parser.get().result_int(), std::move(parser.get().body())};
  co_return error;
}

TextResult<std::string> ControlClient::token(http::verb method) const {
  error_code not_literal;
  const auto address = asio::ip::make_address(daemon_.address.host, not_literal);
  const bool here = not_literal ? daemon_.address.host == "localhost" : address.is_loopback();
  if (method == http::verb::get && here) return {boost::system::in_place_value};
  const auto read = control::read_token(daemon_.token_file);
  if (read) return {boost::system::in_place_value, *read};
  if (read.error().missing)
    return TextError{
        "there is no control token file " + daemon_.token_file.string() +
        "; the daemon keeps the token in its state_dir: give its location with --state-dir or --token-file"};
  return TextError{read.error().sentence +
                   "; run the command as the daemon's user (root), or give --token-file"};
}

std::string ControlClient::trouble(const error_code& error) const {
  const auto where = config::to_text(daemon_.address);
  if (error == asio::error::connection_refused)
    return "cannot connect to the daemon at " + where + ": connection refused; is `longhaul run` running?";
  if (error == beast::error::timeout)
    return "no answer from " + where + " within " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(daemon_.patience).count()) +
           " s; is `longhaul run` still responding there?";
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    return "the daemon at " + where + " closed the connection without an answer";
  if (error.category() == make_error_code(http::error::bad_version).category())
    return "the server at " + where + " is not longhaul's control API: " + error.message();
  return "cannot reach the daemon at " + where + ": " + error.message();
}

TextResult<ControlClient::Reply> ControlClient::fetch(http::verb method, const std::string& target,
                                                      const std::string& body, const std::string& secret) {
  if (!connected_) {
    if (const auto error = run(connect())) return fail(trouble(error));
    connected_ = true;
  }
  Reply reply;
  if (const auto error = run(exchange(method, target, body, secret, reply))) {
    connected_ = false;
    return fail(trouble(error));
  }
  return reply;
}

TextResult<std::string> ControlClient::get_text(const std::string& target) {
  const auto secret = token(http::verb::get);
  if (secret.has_error()) return secret.error();
  auto reply = fetch(http::verb::get, target, {}, *secret);
  if (reply.has_error()) return reply.error();
  if (reply->status >= 300) return fail("the daemon answered with HTTP status " + std::to_string(reply->status));
  return {boost::system::in_place_value, std::move(reply->body)};
}

TextResult<json::value> ControlClient::ask(http::verb method, const std::string& target,
                                           const std::string& body) {
  const auto secret = token(method);
  if (secret.has_error()) return secret.error();
  const auto fetched = fetch(method, target, body, *secret);
  if (fetched.has_error()) return fetched.error();
  const Reply& reply = *fetched;
  error_code error;
  auto answer = json::parse(reply.body, error);
  if (error || !answer.is_object())
    return fail("the server at " + config::to_text(daemon_.address) + " is not longhaul's control API");
  if (reply.status < 300) return answer;
  if (reply.status == static_cast<unsigned>(http::status::unauthorized) && !secret->empty())
    return fail("the daemon at " + config::to_text(daemon_.address) + " rejects the token in " +
                daemon_.token_file.string() +
                "; it may use another token file: give its location with --state-dir or --token-file");
  const auto* sentence = answer.get_object().if_contains("error");
  return fail(sentence != nullptr && sentence->is_string()
                  ? std::string(sentence->get_string())
                  : "the daemon answered with HTTP status " + std::to_string(reply.status));
}

}  // namespace longhaul::cli
