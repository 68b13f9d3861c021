// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/check_command.h"

#include <memory>
#include <ostream>

#include "proxy/cli/command_line.h"
#include "proxy/cli/describe.h"
#include "proxy/config/read.h"
#include "proxy/identity/identity.h"

namespace longhaul::cli {
namespace {

int check(const std::string& file, std::ostream& out) {
  const config::Config config = config::read(file);
  std::vector<std::string> warnings = config::warnings(config);
  std::string fingerprint;
  if (!config.identity.certificate.empty()) {
    const identity::Identity identity = identity::load(config.identity);
    fingerprint = identity.fingerprint;
    warnings.insert(warnings.end(), identity.warnings.begin(), identity.warnings.end());
    for (const config::Peer& peer : config.peers)
      if (peer.fingerprint == fingerprint)
        throw config::ConfigError(
            config.file.string() + ": the peer \"" + peer.name +
            "\" has the fingerprint of this site's own key; each site needs a key of its own.");
  }
  out << describe(config, fingerprint);
  for (const std::string& warning : warnings) out << "warning: " << warning << '\n';
  return kDone;
}

}  // namespace

void add_check_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code) {
  (void)errors;
  CLI::App* command =
      app.add_subcommand("check", "Reads a configuration, says what is wrong or what it would do");
  const auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "the configuration, such as examples/branch.toml")->required();
  command->callback([file, &out, &exit_code] { exit_code = check(*file, out); });
}

}  // namespace longhaul::cli
