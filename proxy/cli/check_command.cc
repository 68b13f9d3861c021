// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/check_command.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <ostream>

#include "proxy/cli/command_line.h"
#include "proxy/cli/describe.h"
#include "proxy/config/read.h"
#include "proxy/identity/identity.h"
#include "proxy/intercept/host_checks.h"
#include "proxy/memory_plan.h"
#include "proxy/process/confinement.h"

namespace longhaul::cli {
namespace {

struct Typed {
  std::string file;
  bool file_only = false;
};

struct Report {
  std::vector<std::string> errors, warnings;
};

// Setting the option makes the kernel load the module, so the list of loaded modules would not tell.
void look_at_congestion_control(const std::string& name, Report& report) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const bool taken = ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                  static_cast<socklen_t>(name.size())) == 0;
  const int error = errno;
  ::close(socket);
  if (taken) return;
  report.warnings.push_back("The kernel does not allow this user to set congestion_control = \"" + name + "\" (" +
                            std::strerror(error) + "), so the kernel's default is used. Remedy: modprobe tcp_" + name +
                            "; without root, also add it to sysctl net.ipv4.tcp_allowed_congestion_control.");
}

void look_at_host(const config::Config& config, Report& report) {
  const auto append = [](std::vector<std::string>& list, std::vector<std::string> more) {
    for (std::string& sentence : more) list.push_back(std::move(sentence));
  };
  process::Findings found = process::findings(config);
  append(report.errors, std::move(found.errors));
  append(report.warnings, std::move(found.warnings));
  if (!config.peers.empty()) look_at_congestion_control(config.link.congestion_control, report);
  for (const intercept::Finding& finding : intercept::host_findings(config)) {
    auto& list = finding.weight == intercept::Finding::Weight::blocks ? report.errors : report.warnings;
    list.push_back(finding.sentence + " Remedy: " + finding.remedy + ".");
  }
}

int check(const Typed& typed, std::ostream& out) {
  const config::Config config = config::read(typed.file);
  Report report{.errors = {}, .warnings = config::warnings(config)};
  const identity::Identity identity = identity::load(config);
  const auto memory = memory_warnings(config);
  report.warnings.insert(report.warnings.end(), memory.begin(), memory.end());
  report.warnings.insert(report.warnings.end(), identity.warnings.begin(), identity.warnings.end());
  if (!typed.file_only) look_at_host(config, report);
  out << describe(config, identity.fingerprint);
  for (const std::string& warning : report.warnings) out << "warning: " << warning << '\n';
  for (const std::string& error : report.errors) out << "error: " << error << '\n';
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
