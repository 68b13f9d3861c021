// SPDX-License-Identifier: Apache-2.0
// The daemon's store of module objects on disk: opens the store next to the disk dictionary, and handles the
// results of its threads on the event loop. cache/ stores the data; proxy/modules/objects.h is the interface
// for modules.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "cache/disk_objects.h"
#include "cache/read_patience.h"
#include "proxy/config/config.h"
#include "proxy/memory_plan.h"
#include "proxy/modules/objects.h"

namespace longhaul {

class ObjectDisk final : public modules::Objects {
 public:
  // Throws cache::StoreInUse; any other unusable directory is logged, and then there is no store. `io`
  // outlives this object, and has stopped when it is destroyed.
  ObjectDisk(boost::asio::io_context& io, const config::Config& config, const MemoryPlan& plan);

  // Null if none is configured or it cannot be used.
  modules::Objects* objects() { return store_ ? this : nullptr; }
  std::optional<cache::ObjectCounters> counters() const;
  cache::ClearedKey cleared_key() const { return store_ ? store_->cleared_key() : cache::ClearedKey::none; }

  // modules::Objects
  std::optional<Found> find(std::string_view name, const Fits& fits) const override;
  // False also while the disk is late: its clients would wait in vain.
  bool read(Id id, Done done) override;
  void put(std::string_view name, Buffer tag, std::vector<Slice> parts) override {
    store_->put(name, std::move(tag), std::move(parts));
  }
  void erase(std::string_view name) override { store_->erase(name); }
  void erase(std::string_view name, Bytes tag) override { store_->erase(name, tag); }
  std::uint64_t clear() override { return store_->clear(); }
  std::uint64_t memory_bytes() const override { return store_->memory_bytes(); }

 private:
  void poll();

  boost::asio::io_context& io_;
  cache::ReadPatience patience_;
  std::unique_ptr<cache::DiskObjects> store_;
};

}  // namespace longhaul
