// SPDX-License-Identifier: Apache-2.0
// `longhaul-probe agent`: does at the far end what a console asks for. It listens, accepts, sends and
// receives; it dials others only where it was started with the leave to do so.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "tools/measuring/connection.h"

namespace longhaul::probe {

inline constexpr std::uint16_t kAgentPort = 7612;
measuring::Identity identity(const std::string& token);
std::string token_of(const std::string& file);  // its first line; empty for no file. Throws Trouble.

struct AgentOptions {
  std::string listen = "[::]:7612";
  std::string token;
  bool may_dial = false;  // for `neighbours`: measure towards another agent when asked
};
// Until SIGINT or SIGTERM.
void run_agent(const AgentOptions& options);

}  // namespace longhaul::probe
