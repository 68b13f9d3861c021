// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/host_needs.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <cerrno>
#include <cstring>

#include "proxy/host_findings.h"
#include "proxy/intercept/host_checks.h"
#include "proxy/process/confinement.h"

namespace longhaul::cli {
namespace {

// Setting the option makes the kernel load the module, so the list of loaded modules would not show it.
void look_at_congestion_control(const std::string& name, HostNeeds& needs) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const bool taken = ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                  static_cast<socklen_t>(name.size())) == 0;
  const int error = errno;
  ::close(socket);
  if (taken) return;
  needs.warnings.push_back("The kernel does not allow this user to set congestion_control = \"" + name + "\" (" +
                           std::strerror(error) + "), so the kernel's default is used. Remedy: modprobe tcp_" + name +
                           "; without root, also add it to sysctl net.ipv4.tcp_allowed_congestion_control.");
}

template <class Protocol>
void look_at_port(const typename Protocol::endpoint& at, const std::string& what, HostNeeds& needs) {
  const int type = std::is_same_v<Protocol, boost::asio::ip::tcp> ? SOCK_STREAM : SOCK_DGRAM;
  const int socket = ::socket(at.protocol().family(), type | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const int on = 1;
  if (type == SOCK_STREAM) (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket, at.data(), static_cast<socklen_t>(at.size())) != 0)
    needs.warnings.push_back(
        what + " cannot be used: " + std::strerror(errno) +
        ". Remedy: stop the program that uses it (ss -lntup shows it), or configure another port.");
  ::close(socket);
}

}  // namespace

std::string to_text(const HostNeeds& needs) {
  std::string text;
  for (const std::string& warning : needs.warnings) text += "warning: " + warning + '\n';
  for (const std::string& error : needs.errors) text += "error: " + error + '\n';
  return text;
}

HostNeeds host_needs(const config::Config& config) {
  HostNeeds needs;
  const auto append = [](std::vector<std::string>& list, std::vector<std::string> more) {
    for (std::string& sentence : more) list.push_back(std::move(sentence));
  };
  process::Findings found = process::findings(config);
  append(needs.errors, std::move(found.errors));
  append(needs.warnings, std::move(found.warnings));
  HostFindings facts = host_findings(config, host_facts(config));
  append(needs.errors, std::move(facts.errors));
  append(needs.warnings, std::move(facts.warnings));
  if (!config.peers.empty()) look_at_congestion_control(config.link.congestion_control, needs);
  for (const intercept::Finding& finding : intercept::host_findings(config)) {
    auto& list = finding.weight == intercept::Finding::Weight::blocks ? needs.errors : needs.warnings;
    list.push_back(finding.sentence + " Remedy: " + finding.remedy + ".");
  }
  return needs;
}

HostNeeds needs_before_first_start(const config::Config& config) {
  namespace ip = boost::asio::ip;
  HostNeeds needs = host_needs(config);
  const auto look = [&](const config::HostPort& at, bool udp) {
    const auto address = config::parse_address(at.host);
    if (!address) return;
    look_at_port<ip::tcp>({*address, at.port}, "TCP port " + std::to_string(at.port), needs);
    if (udp) look_at_port<ip::udp>({*address, at.port}, "UDP port " + std::to_string(at.port), needs);
  };
  if (config.link.listen) look(*config.link.listen, true);
  look(config.control.listen, false);
  if (config.intercept.mode == config::Intercept::Mode::tproxy) look({"::", config.intercept.port}, false);
  timex clock{};
  if (::adjtimex(&clock) == TIME_ERROR && (clock.status & STA_UNSYNC) != 0)
    needs.warnings.push_back("The clock of this host is not synchronised, so its log cannot be compared with that of the "
                             "other site. Remedy: timedatectl set-ntp true.");
  return needs;
}

}  // namespace longhaul::cli
