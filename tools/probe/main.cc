// SPDX-License-Identifier: Apache-2.0
// The command line of longhaul-probe. Leaves all work to the library beside it.
#include <csignal>
#include <iostream>

#include "cli11.h"
#include "manuals/options.h"
#include "tools/probe/host_command.h"
#include "tools/probe/options_command.h"
#include "tools/probe/path_command.h"
#include "tools/probe/tcp_command.h"

int main(int argc, char** argv) {
  using namespace longhaul::probe;
  CLI::App app{"Measures the capacity, delay and loss of a path, and finds what limits TCP on it."};
  app.require_subcommand(1);
  PathCommand path{app};
  OptionsCommand options{app};
  HostCommand host{app};
  TcpCommand tcp{app};
  AgentCommand agent{app};
  longhaul::manuals::add_options(app, "longhaul-probe");
  try {
    app.parse(argc, argv);
    std::signal(SIGPIPE, SIG_IGN);
    if (path.chosen()) return path.run();
    if (options.chosen()) return options.run();
    if (host.chosen()) return host.run();
    if (tcp.chosen()) return tcp.run();
    return agent.run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "longhaul-probe: " << error.what() << std::endl;
    return 1;
  }
}
