// SPDX-License-Identifier: Apache-2.0
// The agent's conversations. All of them run on one thread; only the scripts have others.
#include "tools/txn/agent.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <set>

#include "tools/measuring/outcome.h"
#include "tools/measuring/trouble.h"
#include "tools/txn/protocol.h"
#include "tools/txn/scripts.h"

namespace longhaul::txn {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using measuring::Connection;
using measuring::Trouble;
using namespace asio::experimental::awaitable_operators;

constexpr std::size_t kMostConversations = 512;  // a hundred pairs and more, and a bound for strangers
using measuring::kOutcome;

asio::ip::address unmapped(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return address;
}

// One end of one pair, as long as its console is there.
class Conversation {
 public:
  Conversation(Connection connection, asio::io_context& io)
      : connection_(std::move(connection)), io_(io), wake_(std::make_shared<asio::steady_timer>(io)) {}

  void end(const std::string& why) {  // from outside
    if (ending_.empty()) ending_ = why;
    job_.stop();
    if (!started_) connection_.close();
  }

  awaitable<void> run() {
    const auto wish = co_await connection_.receive(kGreetingPatience);
    const Workload workload = workload_of(measuring::object(wish, "workload"));
    const std::string what = measuring::text(wish, "do", 16);
    if (what == "serve")
      co_await prepare_serving(workload, wish);
    else if (what == "drive")
      co_await prepare_driving(workload, wish);
    else
      throw Trouble("unknown request: '" + what + "'");
    co_await (report() && listen());
  }

  Connection& connection() { return connection_; }

 private:
  awaitable<void> prepare_serving(const Workload& workload, const boost::json::object& wish) {
    const auto wanted = measuring::text(wish, "address", 255);
    const auto port = static_cast<std::uint16_t>(measuring::number(wish, "port", 0, 65'535));
    boost::system::error_code no_address;
    asio::ip::address at = asio::ip::make_address(wanted, no_address);
    if (no_address) at = unmapped(connection_.local_address());  // a name, or none: as the console came
    socket_.emplace(serving_socket(workload, at, port, job_.stop_flag()));
    boost::json::object answer;
    answer["address"] = at.to_string();
    answer["port"] = socket_->local().port();
    const auto pass = measuring::Pass::draw();
    answer["pass"] = pass.text();
    co_await connection_.send(answer);
    start([this, workload, pass](Tally& tally, const std::atomic<bool>& stop) {
      serve(workload, *socket_, pass, tally, stop);
    });
  }

  awaitable<void> prepare_driving(const Workload& workload, const boost::json::object& wish) {
    const auto host = measuring::text(wish, "address", 255);
    const auto port = measuring::number(wish, "port", 1, 65'535);
    const auto pass = measuring::Pass::of_text(measuring::text(wish, "pass", 64));
    asio::ip::udp::resolver resolver{io_};
    const std::string service = std::to_string(port);
    const auto [error, found] = co_await resolver.async_resolve(host, service, kOutcome);
    if (error || found.empty()) throw Trouble("'" + host + "' is unknown: " + error.message());
    const SocketAddress to =
        socket_address(found.begin()->endpoint().address(), static_cast<std::uint16_t>(port));
    const boost::json::object ready;
    co_await connection_.send(ready);
    const auto go = co_await connection_.receive(kSilence * 3);  // other pairs may still be getting ready
    if (measuring::text(go, "do", 16) != "go") throw Trouble("the console did not start the measurement");
    start([workload, to, pass](Tally& tally, const std::atomic<bool>& stop) {
      drive(workload, to, pass, tally, stop);
    });
  }

  void start(Job::Work work) {
    started_ = true;
    // What is posted may come when this conversation is gone.
    job_.start(std::move(work), [&io = io_, wake = wake_] { asio::post(io, [wake] { wake->cancel(); }); });
    if (!ending_.empty()) job_.stop();
  }

  awaitable<void> report() {
    bool ended = false;
    while (!ended) {
      if (!job_.has_ended()) {
        wake_->expires_after(kReportEvery);
        co_await wake_->async_wait(kOutcome);
      }
      ended = job_.has_ended();
      Measured measured = job_.tally().take(kMostTimesInReport);
      if (measured.response_ns.size() == kMostTimesInReport) ended = false;  // there are more
      if (ended && (!job_.trouble().empty() || !ending_.empty())) {
        co_await connection_.tell_trouble(ending_.empty() ? job_.trouble() : ending_);
        break;
      }
      const auto message = report_of(measured, ended);
      try {
        co_await connection_.send(message);
      } catch (const Trouble&) {  // the console is gone
        job_.stop();
      }
    }
    connection_.close();
  }

  // Anything that is said, or the end of the connection, stops the script.
  awaitable<void> listen() {
    try {
      const auto message = co_await connection_.receive(std::chrono::hours{24 * 365});
    } catch (const Trouble&) {
    }
    job_.stop();
  }

  Connection connection_;
  asio::io_context& io_;
  std::shared_ptr<asio::steady_timer> wake_;
  bool started_ = false;
  std::string ending_;
  std::optional<Socket> socket_;
  Job job_;  // ends before what its thread uses
};

class Agent {
 public:
  Agent(const AgentOptions& options, std::ostream& log)
      : identity_(identity(options.token)),
        log_(log),
        acceptor_(measuring::listen(io_.get_executor(), options.listen)),
        signals_(io_, SIGINT, SIGTERM) {
    log_ << "longhaul-txn: agent listens at "
         << measuring::to_text({options.listen.host, acceptor_.local_endpoint().port()}) << std::endl;
    if (options.token.empty() && !acceptor_.local_endpoint().address().is_loopback())
      log_ << "longhaul-txn: warning: without a token, any host that reaches this port can make this host "
              "send and "
              "receive"
           << std::endl;
  }

  void run() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) end();
    });
    asio::co_spawn(io_, accept(), asio::detached);
    io_.run();
  }

 private:
  void end() {
    acceptor_.close();
    for (Conversation* conversation : running_) conversation->end("the agent was stopped");
    ending_ = true;
    // A second signal, or a console that does not read what it is told, ends it at once.
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) std::_Exit(1);
    });
    if (running_.empty()) signals_.cancel();
  }

  awaitable<void> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(kOutcome);
      if (!acceptor_.is_open()) co_return;
      if (error) continue;
      if (conversations_ == kMostConversations) continue;  // closes it
      ++conversations_;
      asio::co_spawn(io_, converse(std::move(socket)), asio::detached);
    }
  }

  awaitable<void> converse(tcp::socket socket) {
    try {
      Connection connection = co_await measuring::welcome(std::move(socket), identity_, kGreetingPatience);
      Conversation conversation{std::move(connection), io_};
      running_.insert(&conversation);
      std::string trouble;
      try {
        co_await conversation.run();
      } catch (const Trouble& caught) {
        trouble = measuring::fit_to_print(caught.what());  // it may name what the console asked for
      }
      if (!trouble.empty()) {
        log_ << "longhaul-txn: " << conversation.connection().peer() << ": " << trouble << std::endl;
        co_await conversation.connection().tell_trouble(trouble);
      }
      running_.erase(&conversation);
    } catch (const Trouble& trouble) {
      log_ << "longhaul-txn: " << trouble.what() << std::endl;
    }
    --conversations_;
    if (ending_ && running_.empty()) signals_.cancel();
  }

  asio::io_context io_;
  const measuring::Identity identity_;
  std::ostream& log_;
  tcp::acceptor acceptor_;
  asio::signal_set signals_;
  std::set<Conversation*> running_;
  std::size_t conversations_ = 0;
  bool ending_ = false;
};

}  // namespace

void run_agent(const AgentOptions& options, std::ostream& log) {
  Agent agent{options, log};
  agent.run();
}

}  // namespace longhaul::txn
