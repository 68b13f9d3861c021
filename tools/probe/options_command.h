// SPDX-License-Identifier: Apache-2.0
// `longhaul-probe options`: its command line. Leaves sending to options.h and the agent's part to far_end.h.
#pragma once

#include "cli11.h"
#include "tools/probe/options.h"

namespace longhaul::probe {

class OptionsCommand {
 public:
  explicit OptionsCommand(CLI::App& app);
  bool chosen() const { return command_->parsed(); }
  int run();

 private:
  CLI::App* command_;
  OptionsRequest request_;
  std::string family_ = "any";
  std::string agent_;
  std::string token_file_;
  std::string wait_ = "1s";
  bool json_ = false;
};

}  // namespace longhaul::probe
