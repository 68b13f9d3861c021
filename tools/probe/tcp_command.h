// SPDX-License-Identifier: Apache-2.0
// `longhaul-probe agent`, `tcp` and `neighbours`: their command lines. Leaves work to agent.h and rfc6349.h.
#pragma once

#include "cli11.h"
#include "tools/probe/agent.h"
#include "tools/probe/rfc6349.h"

namespace longhaul::probe {

class AgentCommand {
 public:
  explicit AgentCommand(CLI::App& app);
  bool chosen() const { return command_->parsed(); }
  int run();

 private:
  CLI::App* command_;
  AgentOptions options_;
  std::string token_file_;
};

class TcpCommand {
 public:
  explicit TcpCommand(CLI::App& app);
  bool chosen() const { return command_->parsed() || neighbours_->parsed(); }
  int run();

 private:
  CLI::App* command_;
  CLI::App* neighbours_;
  TcpRequest request_;
  std::vector<std::string> agents_;
  std::string token_file_;
  std::string time_ = "10s";
  std::string rate_;
  std::string direction_ = "both";
  bool json_ = false;
};

}  // namespace longhaul::probe
