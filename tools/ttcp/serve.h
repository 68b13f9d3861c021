// SPDX-License-Identifier: Apache-2.0
// The receiving end of sweeps: waits for controllers and does what they announce, one after the other.
#pragma once
#include "tools/ttcp/channel.h"

namespace longhaul::ttcp {

inline constexpr std::uint16_t kControlPort = 5010;

struct ServeOptions {
  std::string listen;  // "": every address
  std::uint16_t control_port = kControlPort;
  std::uint16_t data_port = 0;  // 0: the system's choice for each test
  Family family = Family::any;
  std::string token;  // that a controller must have
  bool once = false;  // end after one sweep
};

// Says on standard error where it listens and what it does. Ends by Interrupted, or after one sweep.
void serve(const ServeOptions& options, const Stop& stop);

// One controller's tests, until it says goodbye. Throws PeerGone. For tests, too.
void serve_controller(Channel& control, const ServeOptions& options, const Stop& stop);

}  // namespace longhaul::ttcp
