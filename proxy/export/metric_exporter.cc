// SPDX-License-Identifier: Apache-2.0
#include "proxy/export/metric_exporter.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
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

constexpr auto kPatience = 5s;  // for the name, to connect, to send, and for the answer, each
constexpr std::size_t kMostAnswerHead = 8 * 1024, kMostAnswerBytes = 64 * 1024;

auto told_to(boost::system::error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

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
  stream.expires_after(kPatience);
  co_await http::async_write(stream, request, told_to(error));
  if (error) co_return "cannot send: " + error.message();

  beast::flat_buffer buffer(kMostAnswerHead + kMostAnswerBytes);
  http::response_parser<http::string_body> parser;
  parser.header_limit(kMostAnswerHead);
  parser.body_limit(kMostAnswerBytes);
  stream.expires_after(kPatience);
  co_await http::async_read(stream, buffer, parser, told_to(error));
  if (error) co_return "no answer: " + error.message();
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
