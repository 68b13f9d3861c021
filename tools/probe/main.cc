// SPDX-License-Identifier: Apache-2.0
// The command line of longhaul-probe. Leaves all work to the library beside it.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "tools/probe/path_command.h"

int main(int argc, char** argv) {
  using namespace longhaul::probe;
  CLI::App app{"Measures a path and the hosts at its ends: what it carries, and what limits it."};
  app.require_subcommand(1);
  PathCommand path{app};
  try {
    app.parse(argc, argv);
    std::signal(SIGPIPE, SIG_IGN);
    if (path.chosen()) return path.run();
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "longhaul-probe: " << error.what() << std::endl;
    return 1;
  }
}
