// SPDX-License-Identifier: Apache-2.0
#include "proxy/export/metric_exporter.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "proxy/log/log.h"

namespace longhaul::exporting {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 5s;  // for each step: look-up, connecting, sending, and the response
constexpr std::size_t kMostAnswerHead = 8 * 1024, kMostAnswerBytes = 64 * 1024;

auto told_to(boost::system::error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

using TlsStream = asio::ssl::stream<beast::tcp_stream&>;

// The certificate must contain the configured host name (RFC 9110, section 4.3.4).
bool expect_name(SSL* tls, const std::string& host) {
  boost::system::error_code is_name;
  (void)asio::ip::make_address(host, is_name);
  if (!is_name) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host.c_str()) == 1;
  SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(tls, host.c_str()) == 1 && SSL_set1_host(tls, host.c_str()) == 1;
}

std::string why_no_tls(TlsStream& stream, const boost::system::error_code& error) {
  const long verdict = SSL_get_verify_result(stream.native_handle());
  if (verdict == X509_V_OK) return "the TLS handshake failed: " + error.message();
  const bool unknown = verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
                       verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN || verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
                       verdict == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
  return std::string("the collector's certificate is not accepted: ") + X509_verify_cert_error_string(verdict) +
         (unknown ? "; [export] otlp_ca names the file with its CA" : "");
}

// Returns an empty text if the parser has the response, otherwise the reason. One request per connection.
template <class Stream>
asio::awaitable<std::string> exchange(Stream& stream, beast::tcp_stream& tcp, const http::request<http::string_body>& request,
                                      http::response_parser<http::string_body>& parser) {
  boost::system::error_code error;
  tcp.expires_after(kPatience);
  co_await http::async_write(stream, request, told_to(error));
  if (error) co_return "cannot send: " + error.message();
  beast::flat_buffer buffer(kMostAnswerHead + kMostAnswerBytes);
  parser.header_limit(kMostAnswerHead);
  parser.body_limit(kMostAnswerBytes);
  tcp.expires_after(kPatience);
  co_await http::async_read(stream, buffer, parser, told_to(error));
  // TLS 1.3: a server that requires a certificate reports that after the handshake.
  if (error) co_return "no answer: " + error.message();
  co_return std::string();
}

}  // namespace

MetricExporter::MetricExporter(asio::io_context& io, Settings settings, OtlpSource source,
                               std::function<control::Families()> collect, net::NameResolver& resolver)
    : io_(io),
      settings_(std::move(settings)),
      source_(std::move(source)),
      collect_(std::move(collect)),
      resolver_(resolver),
      timer_(io) {}

void MetricExporter::begin() { asio::co_spawn(io_, run(), asio::detached); }

void MetricExporter::stop() { timer_.cancel(); }

asio::awaitable<void> MetricExporter::run() {
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    // If a request takes longer than an interval, some intervals are skipped.
    next = std::max(next + settings_.interval, std::chrono::steady_clock::now());
    timer_.expires_at(next);
    boost::system::error_code stopped;
    co_await timer_.async_wait(told_to(stopped));
    if (stopped) co_return;
    const std::string why = co_await send(otlp_request(collect_(), source_, std::chrono::system_clock::now()));
    ++(why.empty() ? counters_.sent : counters_.failed);
    counters_.last_error = why;
    if (why.empty() || !complaints_.may_write("otlp", std::chrono::steady_clock::now())) continue;
    log::warn("export_failed", {{"exporter", "otlp"}, {"to", settings_.to.to_text()}, {"reason", why}});
  }
}

asio::awaitable<std::string> MetricExporter::send(std::string body) {
  boost::system::error_code error;
  const auto addresses = co_await resolver_.resolve(settings_.to.at.host, kPatience);
  if (!addresses) co_return "the name cannot be resolved: " + addresses.error().message();
  beast::tcp_stream stream(io_);
  for (const asio::ip::address& address : *addresses) {
    stream.expires_after(kPatience);
    co_await stream.async_connect(asio::ip::tcp::endpoint(address, settings_.to.at.port), told_to(error));
    if (!error) break;
    stream.close();
  }
  if (error) co_return "cannot connect: " + error.message();

  http::request<http::string_body> request{http::verb::post, settings_.to.path + "/v1/metrics", 11};
  request.set(http::field::host, config::to_text(settings_.to.at));
  request.set(http::field::user_agent, "longhaul/" + source_.version);
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "close");
  request.body() = std::move(body);
  request.prepare_payload();
  http::response_parser<http::string_body> parser;
  std::string failure;
  if (settings_.tls) {
    TlsStream tls(stream, *settings_.tls);
    if (!expect_name(tls.native_handle(), settings_.to.at.host)) co_return "the name cannot be used with TLS";
    stream.expires_after(kPatience);
    co_await tls.async_handshake(asio::ssl::stream_base::client, told_to(error));
    if (error) co_return why_no_tls(tls, error);
    failure = co_await exchange(tls, stream, request, parser);
  } else {
    failure = co_await exchange(stream, stream, request, parser);
  }
  if (!failure.empty()) co_return failure;
  co_return judge(parser.get().result_int(), parser.get().body());
}

std::string MetricExporter::judge(unsigned status, std::string_view body) {
  if (status != 200) return "the collector answered with HTTP status " + std::to_string(status);
  const OtlpAnswer answer = read_otlp_answer(body);
  counters_.rejected_points += answer.rejected_points;
  if (answer.rejected_points == 0) return {};
  return std::to_string(answer.rejected_points) + " points were rejected: " + answer.message.substr(0, 256);
}

}  // namespace longhaul::exporting
