// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/fail_closed_command.h"

#include <boost/json/object.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "proxy/cli/command_line.h"
#include "proxy/cli/control_client.h"
#include "proxy/cli/wrap.h"
#include "proxy/config/read.h"
#include "proxy/intercept/closed_door.h"
#include "proxy/intercept/closed_rules.h"
#include "proxy/intercept/kept_rules.h"

namespace longhaul::cli {
namespace {

using config::Config;
using config::TextResult;

struct FailClosedTyped {
  std::string action, file, kept;
  bool if_configured = false;
};

// A running daemon must remove the table itself: it also refuses flows, and would install the table again.
TextResult<void> tell_daemon(const Config& config, const char* action) {
  ControlClient daemon(daemon_of(config));
  const auto answer = daemon.post("/v1/intercept", boost::json::object{{"action", action}});
  if (answer.has_error()) return answer.error();
  return {};
}

TextResult<void> install_rules(const Config& config, bool if_configured, intercept::ClosedDoor& door,
                               std::ostream& out) {
  const auto rules = intercept::closed_rules(config);
  if (!rules) return rules.error();
  if (if_configured && !rules->close_something()) {
    out << "Nothing to install: " << config.file.string() << " requires no closed flows.\n";
    return {};
  }
  if (!rules->close_something())
    return config::TextError{
        config.file.string() +
        " requires no closed flows: neither [intercept] nor a [[rule]] has fail = \"closed\", or no flow "
        "passes through this host"};
  const auto running = door.has_daemon(config.intercept.port);
  if (!running) return running.error();
  if (*running) {
    if (auto told = tell_daemon(config, "fail_closed_install"); !told) return told.error();
  } else if (auto done = door.enforce(config); !done) {
    return done.error();
  }
  out << "The table inet " << intercept::closed_table_name(config.intercept.port)
      << " is installed: closed flows use the link or are refused.\n";
  return {};
}

TextResult<void> remove_rules(const Config& config, intercept::ClosedDoor& door, std::ostream& out) {
  const std::uint16_t port = config.intercept.port;
  const auto running = door.has_daemon(port);
  if (!running) return running.error();
  if (*running) {
    if (auto told = tell_daemon(config, "fail_closed_remove"); !told)
      return config::TextError{told.error().message +
                               ". Nothing was removed, because the daemon would install the table again"};
    out << wrapped("Removed. While the link is down, flows leave unencrypted, until the daemon restarts or reloads its "
                   "configuration, or until: longhaul fail-closed install " +
                   config.file.string());
    return {};
  }
  const auto removed = door.remove(port);
  if (!removed) return removed.error();
  out << wrapped(
      "The table inet " + intercept::closed_table_name(port) +
      (*removed ? " is removed: connections leave unencrypted. The daemon installs it again at its next "
                  "start, unless the configuration has fail = \"open\"."
                : " is not installed: nothing is enforced."));
  return {};
}

TextResult<void> print_rules(const Config& config, intercept::ClosedDoor& door, std::ostream& out) {
  const auto listing = door.listing(config.intercept.port);
  if (!listing) return listing.error();
  out << *listing;
  if (!listing->empty()) return {};
  const auto rules = intercept::closed_rules(config);
  if (!rules) return rules.error();
  if (rules->close_something())
    out << "# not installed; it would be:\n" << intercept::closed_table_text(*rules);
  else
    out << "# not installed, and " << config.file.string() << " requires no closed flows\n";
  return {};
}

// The configuration cannot be read: installs the rules that were last in force, which is better than none.
// The exit code still reports the failure.
TextResult<void> without_configuration(const FailClosedTyped& typed, const std::string& mistake,
                                       intercept::ClosedDoor& door, std::ostream& errors) {
  const auto kept = intercept::read_kept_rules(typed.kept);
  if (kept.has_error())
    return config::TextError{mistake + " And there are no rules to fall back on (" + kept.error().message +
                             "). If fail = \"closed\" is intended, nothing enforces it now"};
  const std::string table = intercept::closed_table_name(kept->port);
  if (typed.action == "install") {
    if (auto done = door.enforce_text(kept->commands); !done) return done.error();
    errors << "longhaul: the table inet " << table << " is installed as it was last in force (" << typed.kept
           << "), because the configuration cannot be read.\n";
  } else if (auto removed = door.remove(kept->port); removed.has_error()) {
    return removed.error();
  } else if (*removed) {
    errors << "longhaul: the table inet " << table << " is removed.\n";
  }
  return config::TextError{mistake};
}

}  // namespace

void add_fail_closed_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "fail-closed",
      "Install, remove or show the packet rules that enforce fail = \"closed\", which outlive the daemon");
  const auto typed = std::make_shared<FailClosedTyped>();
  command->add_option("action", typed->action, "install, remove or print (show the rules)")
      ->required()
      ->check(CLI::IsMember({"install", "remove", "print"}))
      ->type_name("");
  command->add_option("FILE", typed->file, "the daemon's configuration file")->required();
  command->add_flag(
      "--if-configured", typed->if_configured,
      "install: succeed without doing anything if the file requires no closed flows (for a unit at boot)");
  command
      ->add_option("--kept", typed->kept,
                   "install, remove: the file closed.rules of state_dir, with the rules that were last in "
                   "force, to use "
                   "if the configuration cannot be read")
      ->type_name("FILE");
  command->callback([typed, &out, &errors, &exit_code] {
    intercept::ClosedDoor door;
    const auto act = [&](const Config& config) {
      return typed->action == "install"  ? install_rules(config, typed->if_configured, door, out)
             : typed->action == "remove" ? remove_rules(config, door, out)
                                         : print_rules(config, door, out);
    };
    TextResult<void> done;
    try {
      done = act(config::read(typed->file, config::Files::ignore));
    } catch (const config::ConfigError& error) {
      if (typed->kept.empty() || typed->action == "print") throw;
      done = without_configuration(*typed, error.what(), door, errors);
    }
    exit_code = done ? kDone : kFailed;
    if (!done) errors << "longhaul: " << done.error().message << ".\n";
  });
}

}  // namespace longhaul::cli
