// SPDX-License-Identifier: Apache-2.0
// Changes while the daemon runs: a reload of the configuration, and features.
#include <algorithm>

#include "proxy/config/changes.h"
#include "proxy/config/read.h"
#include "proxy/daemon_parts.h"
#include "proxy/log/log.h"

namespace longhaul {
namespace asio = boost::asio;

void Daemon::reload_on_hangup(asio::signal_set& signals) {
  signals.async_wait([this, &signals](boost::system::error_code error, int) {
    if (error) return;
    (void)reload();  // logged
    reload_on_hangup(signals);
  });
}

boost::system::result<std::vector<std::string>, control::Refusal> Daemon::reload() {
  service_.reloading();
  auto done = read_again();
  service_.ready(done ? service_status() : "Reload refused: " + done.error().sentence);
  return done;
}

boost::system::result<std::vector<std::string>, control::Refusal> Daemon::read_again() {
  const auto refuse = [](const std::string& sentence) {
    log::warn("reload_refused",
              {{"reason", sentence}, {"effect", "the previous configuration remains in use"}});
    return control::Refusal{sentence};
  };
  try {
    config::Config config = config::read(config_.file);
    identity::Identity identity = identity::load(config);
    identity::WebTls web = identity::load_web_tls(config);
    const link::TlsContext usable(identity);  // or OpenSSL gives the reason
    config::Changes changes = config::changes(config_, config);
    if (!changes.fixed.empty()) {
      std::string list;
      for (const std::string& each : changes.fixed) list += (list.empty() ? "" : ", ") + each;
      return refuse(config.file.string() + ": " + list +
                    " cannot be changed while the daemon runs; restart it, or undo that change. Nothing was "
                    "changed.");
    }
    if (identity.fingerprint != identity_.fingerprint)
      changes.live.push_back("the key of this site: now " + identity.fingerprint);
    for (const auto& [peer, key] : identity.preshared)
      if (const auto before = identity_.preshared.find(peer);
          before != identity_.preshared.end() && *before->second != *key)
        changes.live.push_back("the preshared key of " + peer + ", used for the next connection");
    for (const auto& [module, secrets] : identity.servers)
      if (const auto before = identity_.servers.find(module);
          before != identity_.servers.end() && before->second->lines() != secrets->lines())
        changes.live.push_back("the keys of servers (" + module + "), used for the next login");
    apply(std::move(config), std::move(identity), std::move(web));
    for (const std::string& change : changes.live) log::info("reloaded", {{"changed", change}});
    if (changes.live.empty()) log::info("reloaded", {{"changed", "nothing"}});
    return std::move(changes.live);
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

// Everything was checked: from here on nothing fails.
void Daemon::apply(config::Config config, identity::Identity identity, identity::WebTls web) {
  const bool new_key = identity.fingerprint != identity_.fingerprint;
  // Changes by `longhaul set` stay, unless the file's value has changed.
  const bool new_features = config.features != config_.features;
  config_ = std::move(config);
  identity_ = std::move(identity);
  web_ = std::move(web);
  if (web_.control) control_->use(web_.control);  // its certificate may be a new one
  // First, as at the start. If this fails, earlier rules stay in force.
  if (const auto closed = apply_door(door_.begin()); !closed)
    log::error("fail_closed_missing", {{"reason", closed.error().message}});
  for (const std::string& warning : identity_.warnings) log::warn("identity", {{"warning", warning}});
  for (const std::string& warning : config::warnings(config_))
    log::warn("configuration", {{"warning", warning}});
  tls_ = link::TlsContext(identity_, key_log_);
  shared_.preshared = identity_.preshared;
  apply_secrets();
  dialer_.allow(config_.link.allow);
  shared_.total_rate.bits = config_.link.total_rate_bits;
  if (link_listener_) link_listener_->set_max_handshakes(config_.limits.handshakes);
  flows_.limits_changed();
  if (auto set = interception_->set_new_flows_per_source(config_.limits.new_flows_per_source); !set)
    log::warn("intercept", {{"reason", set.error().message}});
  apply_peers();
  if (new_key)
    for (auto& link : links_) link->renew();
  if (new_features)
    change_features(config_.features);
  else
    flows_.apply_features();  // the rules may give other features to running flows
}

// Logins that are under way, and sessions, keep the keys that they have.
void Daemon::apply_secrets() {
  for (const modules::Listed& module : modules_) {
    const auto found = identity_.servers.find(module.descriptor.name);
    module.instance->use_secrets(found == identity_.servers.end() ? nullptr : found->second);
  }
}

void Daemon::apply_peers() {
  const auto configured = [this](const std::string& name) {
    return std::ranges::find(config_.peers, name, &config::Peer::name);
  };
  const auto gone = std::stable_partition(links_.begin(), links_.end(), [&](const auto& link) {
    return configured(link->peer().name) != config_.peers.end();
  });
  for (auto link = gone; link != links_.end(); ++link) {
    (*link)->stop();
    histories_.forget((*link)->peer().name);
    removed_links_.push_back(std::move(*link));
  }
  links_.erase(gone, links_.end());
  for (auto& link : links_)
    if (const auto& peer = *configured(link->peer().name); peer != link->peer()) link->update(peer);
  // A group concerns all of its peers; a removed peer takes its segments along.
  for (auto& link : links_) link->dictionary().set_rights(rights_of(config_, link->peer()));
  for (const config::Peer& peer : config_.peers) {
    const auto has = [&](const auto& link) { return link->peer().name == peer.name; };
    if (std::ranges::any_of(links_, has)) continue;
    add_link(peer);
    links_.back()->start();
  }
  pool_.share_among(static_cast<std::uint32_t>(links_.size()));
  know_peers();
  if (auto set = interception_->set_peers(peer_addresses()); !set)
    log::warn("intercept", {{"reason", set.error().message}});
}

void Daemon::change_features(const config::Features& features) {
  features_ = features;
  shared_.allowed = features;
  if (auto set = interception_->set_fast_connect(features.fast_connect); !set)
    log::warn("intercept", {{"reason", set.error().message}});
  for (auto& link : links_) link->apply_features();
  flows_.apply_features();
  for (const auto& [name, value] : config::to_text(features)) log::debug("feature", {{name, value}});
}

}  // namespace longhaul
