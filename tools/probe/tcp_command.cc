// SPDX-License-Identifier: Apache-2.0
// Runs what waits for others until it is done, or Ctrl-C.
#include "tools/probe/tcp_command.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <iostream>

#include "tools/probe/path_command.h"
#include "tools/probe/table.h"
#include "tools/wan/units.h"

namespace longhaul::probe {
namespace {

using measuring::Connection;
using measuring::Trouble;

asio::awaitable<boost::json::object> measure_pair(std::string from, std::string to, TcpRequest request) {
  const measuring::Identity who = identity(request.token);
  Connection agent =
      co_await measuring::dial(measuring::parse_endpoint(from, kAgentPort), who, std::chrono::seconds{10});
  boost::json::object wish;
  wish["do"] = "neighbour";
  wish["agent"] = to;
  wish["ms"] = request.time.count();
  co_await agent.send(wish);
  co_return co_await agent.receive(2 * request.time + std::chrono::minutes{4});
}

int run_to_the_end(asio::awaitable<boost::json::object> work, boost::json::object& found) {
  asio::io_context io;
  std::exception_ptr trouble;
  bool interrupted = false;
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (error) return;
    interrupted = true;
    io.stop();
  });
  asio::co_spawn(io, std::move(work), [&](std::exception_ptr error, boost::json::object result) {
    trouble = error;
    found = std::move(result);
    io.stop();
  });
  io.run();
  if (interrupted) {
    std::cerr << "longhaul-probe: interrupted; unfinished measurements are not printed" << std::endl;
    return kInterrupted;
  }
  if (trouble) std::rethrow_exception(trouble);
  return 0;
}

// Each agent measures towards the one after it, one pair at a time. Which pair does badly is the question,
// so one that cannot be measured is a finding, and the others are measured all the same.
int run_neighbours(const std::vector<std::string>& agents, const TcpRequest& request, bool json) {
  boost::json::array pairs;
  int code = 0;
  for (std::size_t i = 0; i + 1 < agents.size() && code != kInterrupted; ++i) {
    const std::string pair = agents[i] + " and " + agents[i + 1];
    std::cerr << "longhaul-probe: " << pair << " …" << std::endl;
    boost::json::object found;
    try {
      if (run_to_the_end(measure_pair(agents[i], agents[i + 1], request), found) != 0) {
        code = kInterrupted;
        continue;
      }
      if (!json) {
        print_tcp(found, std::cout);
        std::cout << std::endl;
      }
    } catch (const Trouble& trouble) {
      code = 1;
      std::cerr << "longhaul-probe: " << pair << ": " << trouble.what() << std::endl;
      found = {{"from", agents[i]}, {"to", agents[i + 1]}, {"trouble", trouble.what()}};
    }
    pairs.push_back(std::move(found));
  }
  if (json)
    std::cout << boost::json::serialize(boost::json::object{{"pairs", std::move(pairs)}}) << std::endl;
  return code;
}

}  // namespace

AgentCommand::AgentCommand(CLI::App& app) {
  command_ = app.add_subcommand("agent",
                                "run the far end for `options --agent`, `tcp` and `neighbours` until Ctrl-C");
  command_
      ->add_option("--listen", options_.listen,
                   "address and port of the control connection; data connections use dynamic ports")
      ->capture_default_str();
  command_->add_option("--token-file", token_file_, "file with a secret that clients must also have")
      ->type_name("FILE");
  command_->add_flag("--may-dial", options_.may_dial,
                     "also connect to other agents on request (`neighbours`)");
}

int AgentCommand::run() {
  options_.token = token_of(token_file_);
  run_agent(options_);
  return 0;
}

TcpCommand::TcpCommand(CLI::App& app) {
  command_ = app.add_subcommand(
      "tcp", "measure transfer-time ratio, TCP efficiency and buffer delay to an agent (RFC 6349)");
  command_->add_option("agent", request_.agent, "HOST[:PORT] of a `longhaul-probe agent`")->required();
  command_->add_option("--rate", rate_,
                       "capacity of the path, e.g. 51.84mbit (default: measured by trains of UDP packets)");
  command_
      ->add_option("--direction", direction_,
                   "direction of the transfers: there (to the agent), back (from it) or both")
      ->check(CLI::IsMember({"there", "back", "both"}))
      ->capture_default_str();
  neighbours_ = app.add_subcommand(
      "neighbours",
      "measure the same between successive agents along a path, to find the section that limits it");
  neighbours_
      ->add_option("agents", agents_, "HOST[:PORT] of the agents along the path, started with --may-dial")
      ->required()
      ->expected(2, 64);
  for (CLI::App* command : {command_, neighbours_}) {
    command->add_option("--time", time_, "duration of each transfer")->capture_default_str();
    command->add_option("--token-file", token_file_, "the agents' token file")->type_name("FILE");
    command->add_flag("--json", json_, "print one JSON object");
  }
}

int TcpCommand::run() {
  request_.token = token_of(token_file_);
  request_.time = std::chrono::duration_cast<std::chrono::milliseconds>(duration_of("--time", time_));
  if (request_.time < std::chrono::milliseconds{100}) throw CLI::ValidationError("--time", "at least 100ms");
  request_.direction = direction_ == "there"  ? Direction::there
                       : direction_ == "back" ? Direction::back
                                              : Direction::both;
  if (!rate_.empty()) {
    const auto rate = wan::parse_rate(rate_);
    if (!rate) throw CLI::ValidationError("--rate", rate.error());
    request_.rate_bits = static_cast<double>(*rate);
  }
  if (neighbours_->parsed()) return run_neighbours(agents_, request_, json_);
  boost::json::object found;
  if (const int code = run_to_the_end(measure_tcp(request_), found); code != 0) return code;
  if (json_)
    std::cout << boost::json::serialize(found) << std::endl;
  else
    print_tcp(found, std::cout);
  return 0;
}

}  // namespace longhaul::probe
