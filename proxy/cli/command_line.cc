// SPDX-License-Identifier: Apache-2.0
// Parses the command line, and catches all start-up exceptions.
#include "proxy/cli/command_line.h"

#include <algorithm>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "cli11.h"
#include "manuals/options.h"
#include "proxy/cli/check_command.h"
#include "proxy/cli/fail_closed_command.h"
#include "proxy/cli/init_command.h"
#include "proxy/cli/keygen_command.h"
#include "proxy/cli/keytab_command.h"
#include "proxy/cli/run_command.h"
#include "proxy/cli/steer.h"
#include "proxy/cli/support_command.h"
#include "proxy/config/features.h"
#include "proxy/config/read.h"
#include "proxy/config/suggest.h"
#include "proxy/flows/reason.h"
#include "proxy/modules/modules.h"
#include "proxy/version.h"

namespace longhaul::cli {
namespace {

// CLI11 reports a mistyped command as an unexpected argument; this suggests the command that was probably
// meant.
bool tell_unknown_command(const CLI::App& app, std::span<const char* const> words, std::ostream& errors) {
  if (words.size() < 2 || words[1][0] == '-') return false;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), words[1]) != names.end()) return false;
  const std::vector<std::string_view> known(names.begin(), names.end());
  errors << "Unknown command \"" << words[1] << "\"." << config::did_you_mean(words[1], known) << '\n';
  return true;
}

// Additions to the definition of the commands, for the manual page.
std::vector<manuals::Section> manual_sections() {
  return {
      {"Exit status",
       "0: done. 1: the daemon or the host refused. 2: bad usage or bad configuration; nothing was started."},
      {"Signals",
       "longhaul run: SIGTERM and SIGINT stop the daemon cleanly; SIGHUP reloads the configuration, as "
       "longhaul "
       "reload does."},
      {"Files",
       "/etc/longhaul/longhaul.toml: the configuration that longhaul.service runs.\n\n"
       "/etc/longhaul/NAME.toml: the configuration that longhaul@NAME.service runs; its state_dir is "
       "/var/lib/longhaul-NAME.\n\n"
       "/var/lib/longhaul: the default state_dir: the token of the control API, the dictionary on disk and "
       "its key."},
      {"See also", "longhaul.toml(5), systemctl(1), journalctl(1), nft(8)"}};
}

// Values that the options' checks do not name.
std::vector<manuals::Offer> offers() {
  std::vector<std::string> reasons;
  for (const flows::Reason reason : flows::all_reasons()) reasons.emplace_back(reason->code);
  return {{"flows", "--reason", std::move(reasons)},
          {"set", "settings", config::settings_with_names(modules::feature_table())}};
}

}  // namespace

int run_command_line(std::span<const char* const> words, std::ostream& out, std::ostream& errors) {
  CLI::App app("WAN accelerator: two proxies, one at each site, make a long, slow or lossy line feel short.",
               "longhaul");
  app.set_version_flag("--version", "longhaul " + std::string(version()));
  app.require_subcommand(1);
  int exit_code = kDone;
  add_run_command(app, errors, exit_code);
  add_check_command(app, out, exit_code);
  add_keygen_command(app, out, errors, exit_code);
  add_keytab_command(app, out, errors, exit_code);
  add_init_command(app, std::cin, out, errors, exit_code);
  add_steering_commands(app, out, errors, exit_code);
  add_fail_closed_command(app, out, errors, exit_code);
  add_support_command(app, out, errors, exit_code);
  manuals::add_options(app, "longhaul", manual_sections(), offers());
  try {
    app.parse(static_cast<int>(words.size()), words.data());
    return exit_code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 && tell_unknown_command(app, words, errors)) return kBadUsage;
    return app.exit(error, out, errors) == 0 ? kDone : kBadUsage;
  } catch (const config::ConfigError& error) {
    errors << error.what() << '\n';
    return kBadUsage;
  } catch (const std::exception& error) {
    errors << "longhaul: " << error.what() << '\n';
    return kFailed;
  }
}

}  // namespace longhaul::cli
