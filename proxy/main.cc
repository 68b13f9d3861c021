// SPDX-License-Identifier: Apache-2.0
// The program: passes its arguments to the command line.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "proxy/cli/command_line.h"
#include "proxy/identity/token_key.h"

int main(int argc, char** argv) {
  const int exit_code =
      longhaul::cli::run_command_line({argv, static_cast<std::size_t>(argc)}, std::cout, std::cerr);
  if (longhaul::identity::wait_for_token_threads(std::chrono::seconds(2))) return exit_code;
  // A token does not respond. Its thread uses objects that exit() would destroy.
  std::cout.flush();
  std::cerr.flush();
  std::_Exit(exit_code);
}
