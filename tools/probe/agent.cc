// SPDX-License-Identifier: Apache-2.0
// One coroutine for each console; what it is asked for runs one after another.
#include "tools/probe/agent.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fstream>
#include <iostream>

#include "tools/measuring/outcome.h"
#include "tools/measuring/trouble.h"
#include "tools/probe/bound.h"
#include "tools/probe/host.h"
#include "tools/probe/rfc6349.h"
#include "tools/probe/tcp_facts.h"
#include "tools/probe/transfer.h"

namespace longhaul::probe {
namespace {

using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;
using measuring::Connection;
using measuring::Trouble;
using namespace std::chrono_literals;

using measuring::kOutcome;
constexpr auto kGreetingPatience = 10s;
constexpr auto kIdle = std::chrono::milliseconds{10min};  // a console that says nothing for longer is gone
constexpr auto kToConnect = std::chrono::milliseconds{10s};
constexpr auto kTrainMost = std::chrono::milliseconds{5s};
constexpr std::int64_t kLongestMs = 3'600'000;
constexpr unsigned kMostConsoles = 16;

std::string hex_of(Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) / 16];
    text += kDigits[std::to_integer<unsigned>(byte) % 16];
  }
  return text;
}

class Session {
 public:
  Session(Connection console, std::vector<std::byte> syn, const AgentOptions& options)
      : console_(std::move(console)), syn_(std::move(syn)), options_(options) {}

  asio::awaitable<void> run() {
    std::string trouble;
    try {
      while (true) {
        const boost::json::object wish = co_await console_.receive(kIdle);
        const std::string what = measuring::text(wish, "do", 32);
        if (what == "end") co_return;
        if (what == "options")
          co_await tell_options();
        else if (what == "train")
          co_await train(measuring::truth(wish, "back"));
        else if (what == "tcp")
          co_await transfer(wish);
        else if (what == "neighbour")
          co_await towards(wish);
        else
          throw Trouble("unknown request: '" + what + "'");
      }
    } catch (const std::exception& error) {
      trouble = error.what();
    }
    co_await console_.tell_trouble(trouble);
  }

 private:
  asio::awaitable<void> tell_options() {
    boost::json::object answer, settings;
    for (const auto& [name, value] : read_host_settings()) settings[name] = value;
    answer["syn"] = hex_of(syn_);
    answer["settings"] = settings;
    co_await console_.send(answer);
  }

  asio::awaitable<void> tell_port(std::uint16_t port) {
    boost::json::object answer;
    answer["port"] = port;
    co_await console_.send(answer);
  }

  asio::awaitable<void> train(bool back) {
    const auto executor = co_await asio::this_coro::executor;
    udp::socket socket(executor, udp::endpoint(console_.local_address(), 0));
    co_await tell_port(socket.local_endpoint().port());
    boost::json::object answer;
    if (back) {  // to the first connection from the console's host
      std::array<char, kHello> knock;
      udp::endpoint from;
      const Bound bound(socket, kTrainMost);
      const auto [error, size] = co_await socket.async_receive_from(asio::buffer(knock), from, kOutcome);
      if (!error && from.address() == console_.remote_address()) {
        socket.connect(from);
        send_train(socket);
      }
    } else {
      const Train found = co_await receive_train(socket, kTrainMost);
      answer["packets"] = found.packets;
      answer["ip_bytes"] = found.ip_bytes;
      answer["ns"] = static_cast<std::int64_t>(found.seconds * 1e9);
    }
    co_await console_.send(answer);
  }

  asio::awaitable<void> transfer(const boost::json::object& wish) {
    const bool back = measuring::truth(wish, "back");
    const std::chrono::milliseconds time{measuring::number(wish, "ms", 1, kLongestMs)};
    const auto executor = co_await asio::this_coro::executor;
    tcp::acceptor acceptor(executor, tcp::endpoint(console_.local_address(), 0));
    co_await tell_port(acceptor.local_endpoint().port());
    const std::string port = std::to_string(acceptor.local_endpoint().port());
    std::optional<Bound<tcp::acceptor>> bound(std::in_place, acceptor, kToConnect);
    tcp::socket socket(executor);
    while (true) {
      const auto [error] = co_await acceptor.async_accept(socket, kOutcome);
      if (error)
        throw Trouble("no data connection arrived at port " + port +
                      ": a firewall on the path must allow the agent's dynamic ports");
      if (socket.remote_endpoint().address() == console_.remote_address()) break;
      socket = tcp::socket(executor);
    }
    bound.reset();
    boost::json::object answer;
    if (back) {
      const Sent sent = co_await send_for(std::move(socket), time);
      answer = to_json(sent);
    } else {
      const Received received = co_await receive_all(std::move(socket), time + 60s);
      answer = to_json(received);
    }
    co_await console_.send(answer);
  }

  asio::awaitable<void> towards(const boost::json::object& wish) {
    if (!options_.may_dial)
      throw Trouble("this agent may not connect to other agents: start it with --may-dial");
    TcpRequest request;
    request.agent = measuring::text(wish, "agent", 300);
    request.token = options_.token;
    request.time = std::chrono::milliseconds{measuring::number(wish, "ms", 1, kLongestMs)};
    const boost::json::object found = co_await measure_tcp(request);
    co_await console_.send(found);
  }

  Connection console_;
  std::vector<std::byte> syn_;
  const AgentOptions& options_;
};

asio::awaitable<void> serve(tcp::socket socket, const AgentOptions& options, unsigned& consoles) {
  struct Counted {
    unsigned& count;
    ~Counted() { --count; }
  } counted{++consoles};
  (void)counted;
  try {
    std::vector<std::byte> syn = saved_syn(socket.native_handle());
    const measuring::Identity who = identity(options.token);
    Connection console = co_await measuring::welcome(std::move(socket), who, kGreetingPatience);
    Session session(std::move(console), std::move(syn), options);
    co_await session.run();
  } catch (const std::exception& error) {
    std::cerr << "longhaul-probe: " << error.what() << std::endl;
  }
}

asio::awaitable<void> accept_consoles(tcp::acceptor& acceptor, const AgentOptions& options) {
  unsigned consoles = 0;
  while (true) {
    tcp::socket socket(acceptor.get_executor());
    const auto [error] = co_await acceptor.async_accept(socket, kOutcome);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // no descriptors left: later
      asio::steady_timer pause(acceptor.get_executor(), 1s);
      co_await pause.async_wait(kOutcome);
      continue;
    }
    if (consoles >= kMostConsoles) continue;
    asio::co_spawn(acceptor.get_executor(), serve(std::move(socket), options, consoles), asio::detached);
  }
}

}  // namespace

measuring::Identity identity(const std::string& token) { return {"longhaul-probe", 1, token}; }

std::string token_of(const std::string& file) {
  if (file.empty()) return {};
  std::ifstream in(file);
  std::string token;
  if (!std::getline(in, token) || token.empty())
    throw Trouble("no token found in " + file + ": it must be the first line");
  return token;
}

void run_agent(const AgentOptions& options) {
  asio::io_context io;
  tcp::acceptor acceptor =
      measuring::listen(io.get_executor(), measuring::parse_endpoint(options.listen, kAgentPort));
  keep_syns(acceptor.native_handle());
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&io](const error_code&, int) { io.stop(); });
  asio::co_spawn(io, accept_consoles(acceptor, options), asio::detached);
  const auto at = acceptor.local_endpoint();
  std::cerr << "longhaul-probe: agent listens at " << at
            << (options.token.empty() ? ", open to every host that can reach it (--token-file restricts it)"
                                      : "")
            << std::endl;
  io.run();
}

}  // namespace longhaul::probe
