// SPDX-License-Identifier: Apache-2.0
// The console's conversations with both ends of each pair.
#include "tools/txn/console.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <iomanip>
#include <memory>
#include <optional>
#include <ostream>
#include <random>

#include "tools/measuring/outcome.h"
#include "tools/measuring/pass.h"
#include "tools/measuring/trouble.h"
#include "tools/txn/protocol.h"

namespace longhaul::txn {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using measuring::Connection;
using measuring::Trouble;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

using measuring::kOutcome;
constexpr auto kOtherSideMaySay = 500ms;  // when one end has failed, the other often knows why
constexpr auto kProgressEvery = 500ms;

struct Pair {
  AgentPair agents;
  Workload workload;
  std::uint16_t port = 0;
  std::optional<Connection> from;
  std::optional<Connection> to;
  Measured measured;
};

class RowRun {
 public:
  RowRun(const ConsoleOptions& options, const Row& row, std::ostream* progress)
      : row_(row),
        identity_(identity(options.token)),
        progress_(progress),
        signals_(io_, SIGINT, SIGTERM),
        all_ready_(io_, asio::steady_timer::time_point::max()),
        tick_(io_),
        closing_(io_) {
    std::random_device random;
    std::uint16_t port = options.data_port;
    for (const AgentPair& agents : options.agents)
      for (unsigned i = 0; i < row.pairs; ++i) {
        auto pair = std::make_unique<Pair>();
        pair->agents = agents;
        pair->workload = row.workload;
        pair->workload.key = std::uint64_t{random()} << 32 | random();
        pair->port = port;
        if (port) ++port;
        pairs_.push_back(std::move(pair));
      }
  }

  RowResult run() {
    wait_for_signal();
    running_ = pairs_.size();
    for (auto& pair : pairs_) asio::co_spawn(io_, converse(*pair), asio::detached);
    if (progress_) asio::co_spawn(io_, show_progress(), asio::detached);
    io_.run();
    RowResult result;
    result.row = row_;
    result.row.pairs = static_cast<unsigned>(pairs_.size());
    for (auto& pair : pairs_)
      result.pairs.push_back({measuring::to_text(pair->agents.from), measuring::to_text(pair->agents.to),
                              std::move(pair->measured)});
    result.interrupted = interrupted_;
    if (!interrupted_) result.trouble = trouble_;
    return result;
  }

 private:
  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      const bool again = std::exchange(interrupted_, true);
      all_ready_.cancel();
      if (again || ready_ < pairs_.size()) return close_all();
      for (auto& pair : pairs_) asio::co_spawn(io_, ask_to_stop(*pair->from), asio::detached);
      wait_for_signal();
    });
  }

  void close_all() {
    closed_ = true;
    all_ready_.cancel();
    for (auto& pair : pairs_) {
      if (pair->from) pair->from->close();
      if (pair->to) pair->to->close();
    }
  }

  void fail(const std::string& sentence) {
    if (closed_) return;  // what follows from that
    const bool first = trouble_.empty();
    if (first)
      trouble_ = sentence;
    else if (!said_twice_ && trouble_ != sentence) {
      trouble_ += "; " + sentence;
      said_twice_ = true;
    }
    if (!first) return;
    closing_.expires_after(ready_ < pairs_.size() ? 0ms : kOtherSideMaySay);
    closing_.async_wait([this](const boost::system::error_code&) { close_all(); });
  }

  awaitable<void> ask_to_stop(Connection& agent) {
    boost::json::object stop;
    stop["do"] = "stop";
    try {
      co_await agent.send(stop);
    } catch (const Trouble&) {  // the next read reports it
    }
  }

  boost::json::object wish(const Pair& pair, const char* what, const std::string& address,
                           std::uint16_t port) {
    boost::json::object message;
    message["do"] = what;
    message["workload"] = to_json(pair.workload);
    message["address"] = address;
    message["port"] = port;
    return message;
  }

  awaitable<void> prepare(Pair& pair) {
    pair.to.emplace(co_await measuring::dial(pair.agents.to, identity_, kGreetingPatience));
    const auto serve = wish(pair, "serve", pair.agents.data_address, pair.port);
    co_await pair.to->send(serve);
    const auto place = co_await pair.to->receive(kGreetingPatience);
    const auto port = static_cast<std::uint16_t>(measuring::number(place, "port", 1, 65'535));
    std::string address = pair.agents.data_address;
    if (address.empty()) address = measuring::text(place, "address", 255);
    pair.from.emplace(co_await measuring::dial(pair.agents.from, identity_, kGreetingPatience));
    auto drive = wish(pair, "drive", address, port);
    drive["pass"] = measuring::Pass::of_text(measuring::text(place, "pass", 64)).text();
    co_await pair.from->send(drive);
    const auto ready = co_await pair.from->receive(2 * kGreetingPatience);
  }

  awaitable<void> converse(Pair& pair) {
    try {
      co_await prepare(pair);
      // A signal or another pair's trouble may have come while this one had no connections to close.
      if (!closed_) {
        if (++ready_ == pairs_.size())
          all_ready_.cancel();
        else
          co_await all_ready_.async_wait(kOutcome);
      }
      if (!closed_) co_await (watch_driver(pair) && watch_server(pair));
    } catch (const Trouble& trouble) {
      fail(trouble.what());
    }
    if (--running_ > 0) co_return;
    signals_.cancel();
    tick_.cancel();
    closing_.cancel();
  }

  awaitable<void> watch_driver(Pair& pair) {
    try {
      boost::json::object go;
      go["do"] = "go";
      co_await pair.from->send(go);
      for (bool ended = false; !ended;) {
        const auto message = co_await pair.from->receive(kSilence);
        Report report = parse_report(message);
        auto& times = pair.measured.response_ns;
        times.insert(times.end(), report.measured.response_ns.begin(), report.measured.response_ns.end());
        if (times.size() > row_.workload.transactions)
          throw Trouble(pair.from->peer() + " sent too many times");
        report.measured.response_ns.clear();
        times.swap(report.measured.response_ns);
        pair.measured = std::move(report.measured);
        ended = report.ended;
      }
    } catch (const Trouble& trouble) {
      fail(trouble.what());
    }
    co_await ask_to_stop(*pair.to);
  }

  awaitable<void> watch_server(Pair& pair) {
    try {
      for (;;) {
        const auto message = co_await pair.to->receive(kSilence);
        const Report report = parse_report(message);
        if (!report.ended) continue;
        if (report.measured.transactions < pair.measured.transactions)
          throw Trouble(pair.to->peer() + " has seen " + std::to_string(report.measured.transactions) +
                        " of " + std::to_string(pair.measured.transactions) + " transactions");
        pair.measured.counts.sent_again += report.measured.counts.sent_again;  // answers
        pair.measured.counts.timeouts += report.measured.counts.timeouts;
        co_return;
      }
    } catch (const Trouble& trouble) {
      fail(trouble.what());
    }
  }

  awaitable<void> show_progress() {
    const auto total = std::uint64_t{row_.workload.transactions} * pairs_.size();
    while (running_ > 0) {
      tick_.expires_after(kProgressEvery);
      const auto [ended] = co_await tick_.async_wait(kOutcome);
      if (ended) break;
      std::uint64_t done = 0;
      for (const auto& pair : pairs_) done += pair->measured.transactions;
      *progress_ << '\r' << short_name(row_) << ": " << done << " of " << total << " transactions   "
                 << std::flush;
    }
    *progress_ << "\r\x1b[K" << std::flush;  // nothing of it stays
  }

  const Row row_;
  const measuring::Identity identity_;
  std::ostream* progress_;
  asio::io_context io_;
  asio::signal_set signals_;
  asio::steady_timer all_ready_;
  asio::steady_timer tick_;
  asio::steady_timer closing_;
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::size_t ready_ = 0;
  std::size_t running_ = 0;
  std::string trouble_;
  bool said_twice_ = false;
  bool closed_ = false;
  bool interrupted_ = false;
};

}  // namespace

RowResult run_row(const ConsoleOptions& options, const Row& row, std::ostream* progress) {
  RowRun run{options, row, progress};
  return run.run();
}

}  // namespace longhaul::txn
