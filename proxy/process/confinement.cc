// SPDX-License-Identifier: Apache-2.0
#include "proxy/process/confinement.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "proxy/config/read.h"
#include "proxy/identity/token_uri.h"
#include "proxy/process/account.h"
#include "proxy/process/file_access.h"
#include "proxy/process/own_directory.h"
#include "proxy/process/privileges.h"
#include "proxy/process/system_calls.h"

namespace longhaul::process {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAsRoot =
    "The daemon keeps running as root ([process] user = \"root\"): a vulnerability in it compromises the host.";

// A directory owned by the daemon, and files that an earlier version may have created in it as root.
struct Owned {
  fs::path path;
  std::vector<std::string> names;
};

std::vector<Owned> owned_directories(const config::Config& config) {
  const fs::path& dictionary = config.dictionary.directory;
  std::vector<Owned> owned{{config.state_dir, {"closed.rules", "dictionary.key", "intercept.port", "lost-writes", "paths", "peer-addresses"}}};
  if (config.control.token_file.is_relative()) owned[0].names.push_back(config.control.token_file.begin()->string());
  if (dictionary.is_relative())
    owned[0].names.push_back(dictionary.begin()->string());
  else if (config.dictionary.disk_bytes != 0)
    owned.push_back({dictionary, {"lock", "segments", "catalogue"}});
  return owned;
}

bool lies_in(const fs::path& file, const fs::path& directory) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(file, error);
  return std::mismatch(directory.begin(), directory.end(), whole.begin(), whole.end()).first == directory.end();
}

// Refuses a configuration that the daemon's user could change: root starts the daemon with it.
void check_configuration(const config::Config& config, const fs::path& owned, const Account& account) {
  if (account.uid != 0 && ::geteuid() == 0 && lies_in(config.file, owned))
    throw UnsafeDirectory("state_dir " + owned.string() + " belongs to the user " + account.name +
                          " and must not contain the configuration file " + config.file.string() +
                          ", which root reads: keep them in different directories");
}

// Files for libraries: users, host names, resolver, time zones; and for the daemon: its keys, sysctls, its
// own code.
std::vector<fs::path> readable(const config::Config& config) {
  std::vector<fs::path> paths{"/etc", "/usr", "/lib", "/lib64", "/proc", "/sys", "/dev/null", "/dev/urandom", "/dev/random"};
  // The target of the /etc/resolv.conf link, now or after a change.
  for (const char* folder : {"/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf"}) paths.emplace_back(folder);
  std::error_code error;
  if (const fs::path resolver = fs::canonical("/etc/resolv.conf", error); !error) paths.push_back(resolver.parent_path());
  if (const fs::path program = fs::canonical("/proc/self/exe", error); !error) paths.push_back(program);
  for (const fs::path& file : {config.file, config.identity.certificate, config.identity.private_key})
    paths.push_back(fs::absolute(file).parent_path());
  for (const config::Peer& peer : config.peers)
    if (peer.preshared_key_file) paths.push_back(fs::absolute(*peer.preshared_key_file).parent_path());
  for (const config::ServerTable& table : config.servers)
    for (const auto* files : {&table.files, &table.public_files})
      for (const auto& [key, file] : *files) paths.push_back(fs::absolute(file).parent_path());
  for (const config::ServerTable& table : config.servers)
    for (const auto& [key, text] : table.held)
      if (const auto uri = identity::TokenUri::parse(text))
        for (const fs::path& file : {uri->pin_file(), uri->module()})
          if (!file.empty()) paths.push_back(file.parent_path());
  if (config.control.tls_listen)
    for (const fs::path& file : {config.control.tls_certificate, config.control.tls_key}) paths.push_back(fs::absolute(file).parent_path());
  if (const char* credentials = std::getenv("CREDENTIALS_DIRECTORY")) paths.emplace_back(credentials);  // systemd's
  if (config.control.token_file.is_absolute()) paths.push_back(config.control.token_file.parent_path());
  return paths;
}

// Other processes of this user cannot read the keys from this process's memory, and no core file contains
// them.
void hide_memory() {
  const rlimit none{0, 0};
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || ::setrlimit(RLIMIT_CORE, &none) != 0)
    throw std::runtime_error(std::string("core dumps cannot be disabled: ") + std::strerror(errno));
}

Confinement confine_as(const Account& account, const config::Config& config) {
  Confinement result{.user = account.name, .capabilities = {}, .warnings = {}};
  ::umask(077);
  std::vector<fs::path> written{"/proc/sys/net/ipv4/tcp_slow_start_after_idle"};
  for (const Owned& owned : owned_directories(config)) {
    check_configuration(config, check_directory(owned.path, account.uid), account);
    written.push_back(prepare_directory(owned.path, account, owned.names));
  }
  std::optional<FileAccess> files;
  std::vector<fs::path> writable = written;
  writable.insert(writable.end(), config.process.writable.begin(), config.process.writable.end());
  if (config.process.sandbox) files.emplace(readable(config), writable);

  if (account.uid == 0) {
    result.warnings.push_back(kAsRoot);
  } else {
    drop_privileges(account);
  }
  hide_memory();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw std::runtime_error(std::string("no_new_privs cannot be set: ") + std::strerror(errno));
  for (auto directory = written.begin() + 1; directory != written.end(); ++directory)
    check_reachable(*directory, account);
  result.capabilities = effective_capabilities();

  if (!config.process.sandbox) {
    result.warnings.push_back("[process] sandbox = false: a vulnerability in the daemon can reach everything that its user can.");
    return result;
  }
  files->enforce();
  result.landlock_version = files->version();
  const std::string why = filter_system_calls(
      config.process.kills_unknown_calls ? UnknownCalls::kKill : UnknownCalls::kFail);
  result.filters_system_calls = why.empty();
  if (!why.empty()) result.warnings.push_back("No system calls are blocked: " + why + ".");
  return result;
}

}  // namespace

Confinement confine(const config::Config& config) {
  const Account account = account_for(config);
  try {
    return confine_as(account, config);
  } catch (const std::runtime_error& error) {
    throw config::ConfigError(config.file.string() + ": " + error.what() + ".");
  }
}

Findings findings(const config::Config& config) {
  Findings found;
  try {
    const Account account = account_for(config);
    if (account.uid == 0) found.warnings.push_back(kAsRoot);
    for (const Owned& owned : owned_directories(config)) {
      check_configuration(config, check_directory(owned.path, account.uid), account);
      if (const std::string why = why_not_made(owned.path); !why.empty())
        (::geteuid() == 0 ? found.errors : found.warnings).push_back(why);
    }
  } catch (const std::runtime_error& error) {
    found.errors.push_back(error.what());
  }
  return found;
}

}  // namespace longhaul::process
