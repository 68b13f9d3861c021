// SPDX-License-Identifier: Apache-2.0
#include "proxy/module_host.h"

#include <algorithm>
#include <chrono>

#include "proxy/flows/ends.h"
#include "proxy/random_number.h"

namespace longhaul {
namespace asio = boost::asio;
namespace {

std::int64_t seconds_since_1970() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::int64_t{std::chrono::duration_cast<std::chrono::seconds>(since_1970).count()};
}

}  // namespace

std::string peer_of_client(const config::Config& config, const modules::Address& client) {
  const std::uint32_t number = flows::peer_number_in(client);
  const asio::ip::address address = flows::address_in(client);
  const auto peer = std::ranges::find_if(config.peers, [&](const config::Peer& each) {
    if (number != 0) return flows::peer_number(each.name) == number;
    return std::ranges::any_of(each.networks,
                               [&](const config::Network& n) { return config::contains(n, address); });
  });
  return peer == config.peers.end() ? std::string() : peer->name;
}

ModuleHost::ModuleHost(asio::io_context& io, const config::Config& config, const MemoryPlan& plan)
    : io_(io),
      config_(config),
      memory_(std::make_shared<modules::Memory>(plan.module_bytes)),
      object_disk_(io, config, plan),
      modules_(modules::all(
          memory_,
          {.ahead_bytes = plan.ahead_bytes - plan.ahead_bytes / 4,
           .cache_bytes = plan.ahead_bytes / 4,
           .daemon_number = random_number(),
           .owner_of = [&config](const modules::Address& client) { return peer_of_client(config, client); },
           .wall_seconds = [] { return seconds_since_1970(); },
           .now = [] { return modules::TimePoint::clock::now(); },
           .objects = object_disk_.objects()})) {}

void ModuleHost::keep_files() {
  for (const modules::Listed& module : modules_) {
    if (modules::Losses* losses = module.instance->losses()) losses->set_log(&loss_log_);
    if (modules::State* state = module.instance->state())
      state_keepers_.push_back(
          std::make_unique<StateKeeper>(io_, config_.state_dir, module.descriptor.state, *state));
    // After the state, so that data in both counts once.
    if (modules::Journal* journal = module.instance->journal())
      journal_keepers_.push_back(
          std::make_unique<JournalKeeper>(io_, config_.state_dir, module.descriptor.journal, *journal));
  }
}

void ModuleHost::stop() {
  for (auto& keeper : state_keepers_) keeper->stop();
  for (auto& keeper : journal_keepers_) keeper->stop();
}

void ModuleHost::use_secrets(const identity::ServerSecrets& secrets) {
  for (const modules::Listed& module : modules_) {
    const auto found = secrets.find(module.descriptor.name);
    module.instance->use_secrets(found == secrets.end() ? nullptr : found->second);
  }
}

std::uint64_t ModuleHost::clear_cache() {
  std::uint64_t bytes = 0;
  for (const modules::Listed& module : modules_) bytes += module.instance->clear_cache();
  return bytes;
}

void ModuleHost::report_to(control::Status& status) const {
  status.module_bytes = memory_->used_bytes();
  status.module_memory_short = memory_->is_short();
  for (const modules::Listed& module : modules_) status.ahead_bytes += module.instance->ahead_bytes();
  status.objects = object_disk_.counters();
  status.modules = modules_;
}

}  // namespace longhaul
