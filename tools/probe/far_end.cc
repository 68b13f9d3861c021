// SPDX-License-Identifier: Apache-2.0
// One question, one answer, both bounded.
#include "tools/probe/far_end.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "tools/measuring/connection.h"
#include "tools/probe/agent.h"
#include "tools/probe/options.h"

namespace longhaul::probe {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

asio::awaitable<void> ask(measuring::Endpoint to, measuring::Identity who, FarOptions& found) {
  measuring::Connection agent = co_await measuring::dial(to, who, 10s);
  boost::json::object wish;
  wish["do"] = "options";
  co_await agent.send(wish);
  const boost::json::object answer = co_await agent.receive(10s);
  for (const auto& item : measuring::object(answer, "settings"))
    if (const auto* text = item.value().if_string())
      found.settings[std::string(item.key())] = std::string(*text);
  found.syn = read_hex_syn(measuring::text(answer, "syn", 2048));
}

}  // namespace

std::optional<HeaderOptions> read_hex_syn(const std::string& text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    const int high = digit(text[at]), low = digit(text[at + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return read_saved_syn(bytes);
}

FarOptions ask_far_options(const std::string& agent, const std::string& default_host,
                           const std::string& token) {
  std::string at = agent;
  if (at.starts_with(':'))
    at = (default_host.find(':') == std::string::npos ? default_host : "[" + default_host + "]") + at;
  FarOptions found;
  asio::io_context io;
  std::exception_ptr trouble;
  const measuring::Endpoint to = measuring::parse_endpoint(at, kAgentPort);
  found.port = to.port;
  asio::co_spawn(io, ask(to, identity(token), found),
                 [&trouble](std::exception_ptr error) { trouble = error; });
  io.run();
  if (trouble) std::rethrow_exception(trouble);
  return found;
}

}  // namespace longhaul::probe
