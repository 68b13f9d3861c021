// SPDX-License-Identifier: Apache-2.0
// The program: passes its arguments to the command line.
#include <iostream>

#include "proxy/cli/command_line.h"

int main(int argc, char** argv) {
  return longhaul::cli::run_command_line({argv, static_cast<std::size_t>(argc)}, std::cout, std::cerr);
}
