// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/run_command.h"

#include <memory>

#include "proxy/config/read.h"
#include "proxy/daemon.h"
#include "proxy/log/log.h"

namespace longhaul::cli {

void add_run_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Runs the proxy in the foreground until SIGTERM or Ctrl-C");
  const auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "the configuration, such as examples/branch.toml")->required();
  command->callback([file, &exit_code] {
    const config::Config config = config::read(*file);
    const log::Session logging(config.log);
    for (const std::string& warning : config::warnings(config))
      log::warn("configuration", {{"warning", warning}});
    exit_code = run_daemon(config);
  });
}

}  // namespace longhaul::cli
