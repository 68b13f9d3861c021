// SPDX-License-Identifier: Apache-2.0
// `longhaul-probe host`: its options. Leaves judging to host.h.
#pragma once
#include "cli11.h"

namespace longhaul::probe {

class HostCommand {
 public:
  explicit HostCommand(CLI::App& app);
  bool chosen() const { return command_->parsed(); }
  int run() const;  // 1 where something is to be changed

 private:
  CLI::App* command_;
  double rtt_ms_ = 0;
  std::string rate_;
  bool json_ = false;
};

}  // namespace longhaul::probe
