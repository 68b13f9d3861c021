// SPDX-License-Identifier: Apache-2.0
// If a part is unavailable (the daemon does not run, a program is not installed, no root), the archive notes
// that and is created anyway: a system that needs support may be broken.
#include "proxy/cli/support_command.h"

#include <fcntl.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>
#include <sstream>

#include "proxy/cli/archive.h"
#include "proxy/cli/command_line.h"
#include "proxy/cli/control_client.h"
#include "proxy/cli/describe.h"
#include "proxy/cli/host_needs.h"
#include "proxy/cli/program_output.h"
#include "proxy/cli/scrub.h"
#include "proxy/cli/wrap.h"
#include "proxy/config/read.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/token_uri.h"
#include "proxy/memory_plan.h"
#include "proxy/process/private_file.h"
#include "proxy/version.h"

namespace longhaul::cli {
namespace {

constexpr std::size_t kMostOfAFile = 1 << 20;

struct SupportTyped {
  std::string file = "/etc/longhaul/longhaul.toml", output, log, unit;
  unsigned lines = 10'000;
};

// The packaged unit that runs this file.
std::string unit_of(const std::filesystem::path& file) {
  const std::filesystem::path whole = std::filesystem::absolute(file).lexically_normal();
  const bool is_instance =
      whole.parent_path() == "/etc/longhaul" && whole.extension() == ".toml" && whole.stem() != "longhaul";
  return is_instance ? "longhaul@" + whole.stem().string() + ".service" : "longhaul.service";
}

std::string text_of_file(const std::filesystem::path& file, std::size_t most) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return "(" + file.string() + " cannot be read)\n";
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, stream.tellg()));
  stream.seekg(static_cast<std::streamoff>(size > most ? size - most : 0));
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string utc(std::time_t now, const char* format) {
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

// Every secret in the files of this configuration.
Scrubber scrubber_for(const config::Config& config) {
  Scrubber scrubber;
  const auto know = [&](const std::filesystem::path& file) {
    if (const auto read = process::read_private_file(file, kMostOfAFile)) scrubber.know(read->text);
  };
  know(config.identity.private_key);
  know(config.control.token_file.is_absolute() ? config.control.token_file
                                               : config.state_dir / config.control.token_file);
  if (config.control.tls_listen) know(config.control.tls_key);
  know(config.state_dir / "dictionary.key");
  for (const config::Peer& peer : config.peers)
    if (peer.preshared_key_file) know(*peer.preshared_key_file);
  for (const config::ServerTable& table : config.servers)
    for (const auto& [key, file] : table.files) know(file);
  for (const config::ServerTable& table : config.servers)
    for (const auto& [key, text] : table.held)
      if (const auto uri = identity::TokenUri::parse(text); uri && !uri->pin_file().empty())
        know(uri->pin_file());
  return scrubber;
}

class Collection {
 public:
  Collection(std::string folder, std::time_t now)
      : archive_(std::move(folder), std::chrono::system_clock::from_time_t(now)) {}

  Scrubber scrubber;

  void add(std::string_view name, std::string text) { archive_.add(name, scrubber.scrub(std::move(text))); }
  void add_toml(std::string_view name, std::string_view text) { archive_.add(name, scrubber.scrub_toml(text)); }
  void run(std::string_view name, const std::vector<std::vector<std::string>>& programs) {
    std::string text;
    for (const auto& words : programs) {
      text += "$";
      for (const std::string& word : words) text += " " + word;
      text += "\n" + program_output(words) + "\n";
    }
    add(name, std::move(text));
  }
  std::string finish() { return archive_.finish(); }

 private:
  Archive archive_;
};

void add_about(Collection& all, std::time_t now) {
  utsname kernel{};
  ::uname(&kernel);
  std::ostringstream about;
  about << "longhaul " << version() << "\ncollected " << utc(now, "%Y-%m-%dT%H:%M:%SZ") << "\nkernel " << kernel.sysname
        << ' ' << kernel.release << ' ' << kernel.version << ' ' << kernel.machine << '\n';
  all.add("about.txt", about.str());
}

// The output of `longhaul check`.
std::string findings(const config::Config& config) {
  std::ostringstream text;
  try {
    HostNeeds needs = host_needs(config);
    const identity::Identity identity = identity::load(config);
    text << describe(config, identity.fingerprint);
    for (const auto& warning : config::warnings(config)) text << "warning: " << warning << '\n';
    for (const auto& warning : memory_warnings(config)) text << "warning: " << warning << '\n';
    for (const auto& warning : identity.warnings) text << "warning: " << warning << '\n';
    text << to_text(needs);
  } catch (const std::exception& error) {
    text << "error: " << error.what() << '\n';
  }
  return text.str();
}

void add_answers(Collection& all, const Daemon& daemon, std::ostream& out) {
  ControlClient client(daemon);
  bool answers = true;
  const auto ask = [&](const char* name, const char* target) {
    if (!answers) return;
    const auto answer = client.get(target);
    answers = !answer.has_error();
    if (answers)
      all.add(name, boost::json::serialize(*answer) + "\n");
    else
      out << wrapped("without answers of the daemon: " + answer.error().message);
  };
  ask("status.json", "/v1/status");
  ask("intercept.json", "/v1/intercept");
  ask("features.json", "/v1/features");
  ask("flows.json", "/v1/flows?limit=1000");
  ask("talkers.json", "/v1/talkers?limit=100");
  ask("history.json", "/v1/history?step=60");
  if (!answers) return;
  if (const auto metrics = client.get_text("/metrics")) all.add("metrics.txt", *metrics);
}

void add_host(Collection& all) {
  all.run("packet_rules.txt", {{"nft", "list", "ruleset"}});
  all.run("network.txt", {{"ip", "-details", "address"},
                          {"ip", "rule"},
                          {"ip", "-6", "rule"},
                          {"ip", "route", "show", "table", "all"},
                          {"ip", "-6", "route", "show", "table", "all"},
                          {"ip", "-statistics", "link"},
                          {"ss", "-lntup"},
                          {"ss", "-s"}});
  all.run("host.txt", {{"uptime"},
                       {"free"},
                       {"df", "-h"},
                       {"lsmod"},
                       {"sysctl", "-e", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.tcp_syncookies",
                        "net.core.somaxconn", "net.ipv4.conf.all.rp_filter", "net.ipv4.tcp_congestion_control",
                        "net.ipv4.tcp_slow_start_after_idle", "net.core.rmem_max", "net.core.wmem_max"}});
  all.run("packages.txt", {{"cat", "/etc/os-release"},
                           {"dpkg-query", "-W", "longhaul*", "libboost*", "libssl*", "libzstd*", "librocksdb*", "zlib1g",
                            "libnftables*", "libseccomp*", "nftables", "systemd", "libc6", "linux-image*"}});
}

int support(const SupportTyped& typed, std::ostream& out, std::ostream& errors) {
  const std::time_t now = std::time(nullptr);
  std::string site = "unknown";
  std::optional<config::Config> config;
  std::string mistake;
  try {
    config = config::read(typed.file, config::Files::ignore);
    site = config->site;
  } catch (const config::ConfigError& error) {
    mistake = error.what();
    out << wrapped("parts that depend on the configuration are omitted: " + mistake);
  }
  const std::string name = "longhaul-support-" + site + utc(now, "-%Y%m%dT%H%M%SZ");
  Collection all(name, now);
  if (config) all.scrubber = scrubber_for(*config);
  add_about(all, now);
  all.add_toml("configuration.toml", text_of_file(typed.file, kMostOfAFile));
  all.add("check.txt", config ? findings(*config) : mistake + "\n");
  add_answers(all, config ? daemon_of(*config) : Daemon{}, out);
  if (typed.log.empty())
    all.run("log.txt", {{"journalctl", "--no-pager", "-o", "short-iso-precise", "-u",
                         typed.unit.empty() ? unit_of(typed.file) : typed.unit, "-n",
                         std::to_string(typed.lines)},
                        {"systemctl", "--no-pager", "status", "longhaul*"}});
  else
    all.add("log.txt", text_of_file(typed.log, 8 * kMostOfAFile));
  add_host(all);

  const std::filesystem::path file = typed.output.empty() ? name + ".tar.gz" : typed.output;
  if (const auto made = process::make_private_file(file, all.finish()); !made) {
    errors << "longhaul: " << file.string() << " cannot be created: " << process::reason_of(made.error())
           << ".\n";
    return kFailed;
  }
  out << file.string() << '\n'
      << wrapped(
             "It contains addresses of clients and servers and this host's packet rules, but no keys, tokens "
             "or secrets. "
             "Review it before you send it: tar -xzf " +
             file.string());
  return kDone;
}

}  // namespace

void add_support_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "support",
      "Write an archive for a problem report: configuration and log without secrets, status, flows, host");
  const auto typed = std::make_shared<SupportTyped>();
  command->add_option("FILE", typed->file, "the daemon's configuration file")->capture_default_str();
  command->add_option("--output", typed->output,
                      "the archive to write; by default longhaul-support-SITE-TIME.tar.gz in this directory")
      ->type_name("FILE");
  command->add_option("--log", typed->log, "a file with the daemon's log, instead of the journal")->type_name("FILE");
  command->add_option("--unit", typed->unit,
                      "the systemd unit whose journal is taken; by default longhaul@NAME.service for "
                      "/etc/longhaul/NAME.toml, else longhaul.service")
      ->type_name("UNIT");
  command->add_option("--lines", typed->lines, "number of lines from the end of the journal")
      ->type_name("N")
      ->capture_default_str();
  command->callback([typed, &out, &errors, &exit_code] { exit_code = support(*typed, out, errors); });
}

}  // namespace longhaul::cli
