// SPDX-License-Identifier: Apache-2.0
// `longhaul-probe path`: its options, and one measurement after another. Leaves each to sweep.h.
#pragma once

#include "cli11.h"
#include "tools/probe/sweep.h"

namespace longhaul::probe {

constexpr int kInterrupted = 130;  // exit code after Ctrl-C, as shells have it

class PathCommand {
 public:
  explicit PathCommand(CLI::App& app);
  bool chosen() const { return command_->parsed(); }
  int run();

 private:
  void show(const Path& path, const std::string& time) const;
  void show_failure(const std::string& sentence, const std::string& time) const;

  CLI::App* command_;
  PathOptions options_;
  std::string by_ = "auto";
  std::string family_ = "any";
  std::string wait_ = "1s";
  std::string gap_;
  std::string every_ = "0";
  unsigned repeat_ = 1;
  bool symmetric_ = false;
  bool json_ = false;
};

void add_family(CLI::App& command, std::string& family);
Wanted family_of(const std::string& family);
std::chrono::nanoseconds duration_of(const std::string& option,
                                     const std::string& text);  // throws a ParseError

}  // namespace longhaul::probe
