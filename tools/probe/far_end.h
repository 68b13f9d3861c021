// SPDX-License-Identifier: Apache-2.0
// What a console asks an agent about options: the SYN as it arrived there, and that host's settings.
#pragma once
#include <optional>
#include <string>

#include "tools/probe/host.h"
#include "tools/probe/tcp_options.h"

namespace longhaul::probe {

struct FarOptions {
  std::uint16_t port = 0;  // where the agent listens, to which the SYN went
  HostSettings settings;
  std::optional<HeaderOptions> syn;
};
// `agent` is [HOST]:PORT; without a host it is `default_host`. Throws Trouble.
FarOptions ask_far_options(const std::string& agent, const std::string& default_host,
                           const std::string& token);

std::string token_of(const std::string& file);
// The kernel's copy, as an agent writes it. Nothing if it is not one.
std::optional<HeaderOptions> read_hex_syn(const std::string& text);

}  // namespace longhaul::probe
