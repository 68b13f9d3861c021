// SPDX-License-Identifier: Apache-2.0
#include "proxy/reload.h"

#include <utility>

#include "proxy/config/changes.h"
#include "proxy/config/read.h"
#include "proxy/log/log.h"

namespace longhaul {
namespace {

// config::changes() does not compare the contents of files.
std::vector<std::string> changed_keys(const identity::Identity& before, const identity::Identity& after) {
  std::vector<std::string> changes;
  if (after.fingerprint != before.fingerprint)
    changes.push_back("the key of this site: now " + after.fingerprint);
  for (const auto& [peer, key] : after.preshared)
    if (const auto found = before.preshared.find(peer);
        found != before.preshared.end() && *found->second != *key)
      changes.push_back("the preshared key of " + peer + ", used for the next connection");
  for (const auto& [module, secrets] : after.servers)
    if (const auto found = before.servers.find(module);
        found != before.servers.end() && found->second->lines() != secrets->lines())
      changes.push_back("the keys of servers (" + module + "), used for the next login");
  return changes;
}

}  // namespace

boost::system::result<std::vector<std::string>, control::Refusal> reload_settings(
    const SettingsInForce& now, const std::function<void(NewSettings)>& apply) {
  const auto refuse = [](const std::string& sentence) {
    log::warn("reload_refused",
              {{"reason", sentence}, {"effect", "the previous configuration remains in use"}});
    return control::Refusal{sentence};
  };
  try {
    config::Config config = config::read(now.config().file);
    identity::Identity identity = identity::load(config);
    identity::WebTls web = identity::load_web_tls(config);
    const link::TlsContext usable(identity);  // throws with OpenSSL's reason
    config::Changes changes = config::changes(now.config(), config);
    if (!changes.fixed.empty()) {
      std::string list;
      for (const std::string& each : changes.fixed) list += (list.empty() ? "" : ", ") + each;
      return refuse(config.file.string() + ": " + list +
                    " cannot be changed while the daemon runs; restart it, or undo that change. Nothing was "
                    "changed.");
    }
    for (std::string& change : changed_keys(now.identity(), identity))
      changes.live.push_back(std::move(change));
    apply({std::move(config), std::move(identity), std::move(web)});
    for (const std::string& change : changes.live) log::info("reloaded", {{"changed", change}});
    if (changes.live.empty()) log::info("reloaded", {{"changed", "nothing"}});
    return std::move(changes.live);
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

}  // namespace longhaul
