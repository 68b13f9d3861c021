// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/run_command.h"

#include <memory>
#include <ostream>

#include "proxy/cli/command_line.h"
#include "proxy/config/read.h"
#include "proxy/daemon.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/token_key.h"
#include "proxy/identity/web_tls.h"
#include "proxy/intercept/door_keeper.h"
#include "proxy/log/log.h"
#include "proxy/process/confinement.h"
#include "proxy/process/service_manager.h"

namespace longhaul::cli {
namespace {

int run(const config::Config& config) {
  // Done before everything that can fail: if the daemon cannot start, traffic must not be unprotected. The
  // daemon enforces the rules again, and reports errors.
  const auto closed = intercept::ClosedDoor().enforce(config);
  (void)config::read(config.file, config::Files::check);  // a missing key is reported with its line
  // The last actions as root: reading keys that only root may read, then dropping privileges. Both must
  // precede the first thread, which is the log's.
  identity::Identity identity = identity::load(config);
  identity::WebTls web = identity::load_web_tls(config);
  const process::ServiceManager service;  // connects, which the confinement may forbid
  process::Confinement confinement = process::confine(config);
  const log::Session logging(config.log);
  if (closed) intercept::log_change(*closed, config);
  for (const std::string& warning : config::warnings(config))
    log::warn("configuration", {{"warning", warning}});
  const int exit_code =
      run_daemon(config, std::move(identity), std::move(web), std::move(confinement), service);
  (void)identity::wait_for_token_threads(std::chrono::seconds(2));  // so that they log; main() waits for more
  return exit_code;
}

}  // namespace

void add_run_command(CLI::App& app, std::ostream& errors, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Run the proxy in the foreground until SIGTERM or Ctrl-C");
  const auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "the configuration file, such as examples/branch.toml")->required();
  command->callback([file, &errors, &exit_code] {
    const config::Config config = config::read(*file, config::Files::ignore);
    try {
      exit_code = run(config);
    } catch (const config::ConfigError& error) {
      // The file is valid, but this host lacks something (an address, an interface, a key) that may become
      // available: systemd tries again.
      errors << error.what() << '\n';
      exit_code = kFailed;
    }
  });
}

}  // namespace longhaul::cli
