// SPDX-License-Identifier: Apache-2.0
// The application modules of this daemon, with everything that they have outside of flows: memory, objects on
// disk, state and journal files, and their log of losses. flows/ runs a module's halves.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/control/controlled.h"
#include "proxy/identity/server_secrets.h"
#include "proxy/journal_keeper.h"
#include "proxy/loss_log.h"
#include "proxy/memory_plan.h"
#include "proxy/modules/modules.h"
#include "proxy/object_disk.h"
#include "proxy/state_keeper.h"

namespace longhaul {

class ModuleHost {
 public:
  // Both references outlive this object; a reload may change the configuration. Throws cache::StoreInUse.
  ModuleHost(boost::asio::io_context& io, const config::Config& config, const MemoryPlan& plan);
  ModuleHost(const ModuleHost&) = delete;
  ModuleHost& operator=(const ModuleHost&) = delete;

  // Reads the modules' files, and updates them from now on.
  void keep_files();
  // Returns when the files are up to date.
  void stop();

  modules::List list() const { return modules_; }
  // Logins in progress and sessions keep their keys.
  void use_secrets(const identity::ServerSecrets& secrets);
  // Drops stored responses; returns their bytes in memory and on disk.
  std::uint64_t clear_cache();
  cache::ClearedKey cleared_key() const { return object_disk_.cleared_key(); }
  void report_to(control::Status& status) const;

 private:
  boost::asio::io_context& io_;
  const config::Config& config_;
  const std::shared_ptr<modules::Memory> memory_;
  LossLog loss_log_;
  ObjectDisk object_disk_;  // precedes the modules, which use it
  const std::vector<modules::Listed> modules_;
  std::vector<std::unique_ptr<StateKeeper>> state_keepers_;
  std::vector<std::unique_ptr<JournalKeeper>> journal_keepers_;
};

// The peer to which that client and its records belong; empty for this site.
std::string peer_of_client(const config::Config& config, const modules::Address& client);

}  // namespace longhaul
