// SPDX-License-Identifier: Apache-2.0
// The daemon's answers to the control API: reports, and commands that change no configuration.
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "proxy/daemon_parts.h"
#include "proxy/log/log.h"
#include "proxy/version.h"

namespace longhaul {
namespace asio = boost::asio;
using namespace std::chrono_literals;

control::Status Daemon::status() const {
  control::Status status{
      .site = config_.site, .version = std::string(version()), .confinement = confinement_};
  status.uptime =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_);
  if (config_.control.tls_listen) status.control_tls = config::to_text(*config_.control.tls_listen);
  status.flows_limit = config_.limits.flows;
  status.handshakes = shared_.handshakes;
  status.handshakes_limit = config_.limits.handshakes;
  if (link_listener_) status.strangers_refused = link_listener_->refused();
  status.memory_short = pool_.used_up() || retained_.used_up();
  status.module_bytes = module_memory_->used_bytes();
  status.module_memory_short = module_memory_->is_short();
  for (const modules::Listed& module : modules_) status.ahead_bytes += module.instance->ahead_bytes();
  status.memory_limit_bytes = plan_.cap_bytes;
  status.intercept =
      config_.intercept.mode == config::Intercept::Mode::off
          ? control::InterceptState::not_configured
          : (interception_->is_up() ? control::InterceptState::up : control::InterceptState::down);
  status.intercept_error = intercept_error_;
  const auto bypassed = interception_->bypassed();
  for (std::size_t i = 0; i < bypassed.size(); ++i)
    status.bypassed.emplace_back(intercept::kBypassCounters[i], bypassed[i]);
  status.fail_closed = door_.state();
  status.fail_closed_error = door_.error();
  status.disk = disk_.counters();
  status.objects = object_disk_.counters();
  if (shared_.udp) status.unknown_datagrams = shared_.udp->counters().unknown;
  status.dictionary_bytes = disk_.memory_bytes();
  for (const auto& link : links_) status.dictionary_bytes += link->dictionary().memory_bytes();
  status.dictionary_limit_bytes = plan_.history_bytes + plan_.store_bytes;
  status.memory_parts = {{"credit", pool_.granted_bytes(), plan_.credit_bytes},
                         {"retained", retained_.used_bytes(), plan_.retained_bytes},
                         {"modules", module_memory_->used_bytes(), plan_.module_bytes},
                         {"ahead", status.ahead_bytes, plan_.ahead_bytes},
                         {"dictionaries", status.dictionary_bytes, status.dictionary_limit_bytes}};
  for (const control::MemoryPart& part : status.memory_parts) status.memory_bytes += part.bytes;
  for (const auto& link : links_) status.links.push_back(link->status());
  status.rates = rates_;
  status.modules = modules_;
  status.connections_ahead = flows_.spares().size();
  status.connections_ahead_so_far = flows_.spares().counters();
  if (config_.log.syslog) status.syslog = log::syslog_counters();
  status.logs_keys = config_.link.key_log.has_value();
  if (flow_exporter_) status.flow_export = flow_exporter_->counters();
  if (metric_exporter_) status.metric_export = metric_exporter_->counters();
  return status;
}

std::string Daemon::intercept_rules() const { return interception_->rules_text(); }

std::string Daemon::fail_closed_rules() { return door_.listing(); }

void Daemon::measure(const flows::FlowBytes& bytes) {
  control::RecentRates::Sample sample{.at = std::chrono::steady_clock::now(), .flows = bytes, .links = {}};
  for (const auto& link : links_) {
    const link::LinkStatus now = link->status();
    sample.links[now.peer] = {now.bytes_sent, now.bytes_received};
  }
  rates_.add(std::move(sample));
}

asio::awaitable<control::Cleared> Daemon::clear_cache(control::ClearWhat what) {
  control::Cleared cleared;
  for (const modules::Listed& module : modules_) cleared.object_bytes += module.instance->clear_cache();
  const bool is_all = what != control::ClearWhat::objects;
  if (is_all) {
    for (auto& link : links_) cleared.memory_bytes += link->dictionary().clear();
    cleared.disk_bytes = disk_.clear();
    log::info("cache_cleared", {{"memory_bytes", cleared.memory_bytes},
                                {"disk_bytes", cleared.disk_bytes},
                                {"object_bytes", cleared.object_bytes}});
  } else {
    log::info("cache_cleared", {{"object_bytes", cleared.object_bytes}});
  }
  // Waits a round trip or two for the peers' results, and no more: they act whether they answer or not.
  asio::steady_timer timer(io_);
  const auto latest = std::chrono::steady_clock::now() + 2s;
  auto said = [](const auto& link) { return !link->usable() || link->dictionary().cleared_by_peer(); };
  auto all_said = [&] {
    if (object_disk_.cleared_key() == cache::ClearedKey::pending) return false;
    return !is_all || (std::all_of(links_.begin(), links_.end(), said) &&
                       disk_.cleared_key() != cache::ClearedKey::pending);
  };
  while (!all_said() && std::chrono::steady_clock::now() < latest) {
    timer.expires_after(5ms);
    co_await timer.async_wait(asio::use_awaitable);
  }
  cleared.object_key = object_disk_.cleared_key();
  if (!is_all) co_return cleared;
  cleared.disk_key = disk_.cleared_key();
  for (const auto& link : links_)
    cleared.peers.push_back({link->peer().name, link->usable() ? link->dictionary().cleared_by_peer()
                                                               : std::optional<std::uint64_t>()});
  co_return cleared;
}

boost::system::result<void, control::Refusal> Daemon::intercept(control::InterceptAction action) {
  using Action = control::InterceptAction;
  if (action == Action::fail_closed_install || action == Action::fail_closed_remove) {
    const auto done = apply_door(action == Action::fail_closed_install ? door_.enforce() : door_.lift());
    if (!done) return control::Refusal{done.error().message};
    return {};
  }
  if (config_.intercept.mode == config::Intercept::Mode::off)
    return control::Refusal{"the configuration does not set [intercept] mode = \"tproxy\""};
  auto done = action == control::InterceptAction::up ? interception_->up() : interception_->divert();
  intercept_error_ = done ? std::string() : done.error().message;
  if (!done) return control::Refusal{done.error().message};
  log::info(action == control::InterceptAction::up ? "intercept_up" : "intercept_down", {});
  return {};
}

}  // namespace longhaul
