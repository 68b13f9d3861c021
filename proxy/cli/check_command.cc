// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/check_command.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <ostream>

#include "proxy/cli/command_line.h"
#include "proxy/cli/describe.h"
#include "proxy/cli/host_needs.h"
#include "proxy/cli/wrap.h"
#include "proxy/config/read.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/web_tls.h"
#include "proxy/memory_plan.h"

namespace longhaul::cli {
namespace {

struct Typed {
  std::string file;
  bool file_only = false;
};

int check(const Typed& typed, std::ostream& out) {
  const config::Config config = config::read(typed.file);
  HostNeeds report{.errors = {}, .warnings = config::warnings(config)};
  const identity::Identity identity = identity::load(config);
  (void)identity::load_web_tls(config);  // reports problems with its files
  const auto memory = memory_warnings(config);
  report.warnings.insert(report.warnings.end(), memory.begin(), memory.end());
  report.warnings.insert(report.warnings.end(), identity.warnings.begin(), identity.warnings.end());
  if (!typed.file_only) {
    HostNeeds needs = host_needs(config);
    std::move(needs.warnings.begin(), needs.warnings.end(), std::back_inserter(report.warnings));
    report.errors = std::move(needs.errors);
  }
  std::string text = describe(config, identity.fingerprint);
  for (const auto& [module, secrets] : identity.servers) {
    text += "Keys of servers (" + std::string(module) + "):\n";
    for (const std::string& line : secrets->lines()) text += "  " + line + '\n';
    if (typed.file_only) continue;
    for (std::string& failure : secrets->try_out()) report.errors.push_back(std::move(failure));
  }
  out << wrapped_lines(text + to_text(report));
  return report.errors.empty() ? kDone : kBadUsage;
}

}  // namespace

void add_check_command(CLI::App& app, std::ostream& out, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("check", "Check a configuration: report its mistakes, or describe what it does");
  const auto typed = std::make_shared<Typed>();
  command->add_option("FILE", typed->file, "the configuration file, such as examples/branch.toml")->required();
  command->add_flag("--file-only", typed->file_only,
                    "check the file alone, not this host's interfaces, kernel modules and sysctls");
  command->callback([typed, &out, &exit_code] { exit_code = check(*typed, out); });
}

}  // namespace longhaul::cli
