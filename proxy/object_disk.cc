// SPDX-License-Identifier: Apache-2.0
#include "proxy/object_disk.h"

#include <bit>
#include <boost/asio/post.hpp>
#include <chrono>
#include <fstream>

#include "proxy/disk_dictionary.h"
#include "proxy/log/log.h"

namespace longhaul {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// Changes at each boot, after which stored times of the system's clock are meaningless. Empty if unknown.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id.size() > cache::kMostBootBytes ? std::string() : id;
}

}  // namespace

ObjectDisk::ObjectDisk(asio::io_context& io, const config::Config& config, const MemoryPlan& plan) : io_(io) {
  const auto list = config.state_dir / "objects.list";
  const std::uint64_t disk = plan.disk_bytes == 0 ? 0 : config.dictionary.objects_on_disk();
  if (disk == 0) {
    // A daemon without the store cannot notice which objects become invalid.
    std::error_code ignored;
    std::filesystem::remove(list, ignored);
    return;
  }
  const std::uint64_t memory = plan.ahead_bytes / 4;
  try {
    store_ = std::make_unique<cache::DiskObjects>(cache::DiskObjectsOptions{
        .folder = {.path = (config.state_dir / config.dictionary.directory / "objects").string(),
                   .key_file = (config.state_dir / "objects.key").string(),
                   .credential = dictionary_credential(),
                   .list_file = list.string(),
                   .boot = boot_id()},
        .cap_bytes = disk,
        .index_bytes = memory / 8,
        .queue_bytes = memory / 4,
        .loading_bytes = memory / 4,
        .wake = [this] { asio::post(io_, [this] { poll(); }); },
        .log = [](const std::string& line) { log::warn("objects", {{"event", line}}); }});
  } catch (const cache::StoreInUse&) {
    throw;
  } catch (const cache::StoreUnusable& error) {
    log::warn("objects", {{"event", error.what()}, {"effect", "responses are stored in memory only"}});
  }
}

void ObjectDisk::poll() {
  if (store_->poll()) asio::post(io_, [this] { poll(); });
}

std::optional<cache::ObjectCounters> ObjectDisk::counters() const {
  if (!store_) return std::nullopt;
  const auto now = Clock::now();
  const cache::ReadPatience::Counters reads = patience_.counters(now);
  cache::ObjectCounters counters = store_->counters();
  counters.answers = patience_.is_patient(now);
  counters.reads_late = reads.late;
  counters.reads_skipped = reads.skipped;
  return counters;
}

bool ObjectDisk::read(Id id, Done done) {
  const auto now = Clock::now();
  if (!patience_.may_read(now)) {
    const std::uint64_t skipped = patience_.counters(now).skipped;
    if (std::has_single_bit(skipped))
      log::warn("objects",
                {{"event", "the disk responds too slowly; stored responses are temporarily not read from it"},
                 {"skipped", std::to_string(skipped)}});
    return false;
  }
  const auto number = patience_.begin(now);
  const bool begun = store_->read(id, [this, number, done = std::move(done)](std::optional<Slice> bytes) {
    patience_.end(Clock::now(), number);
    done(std::move(bytes));
  });
  if (!begun) patience_.forget(number);
  return begun;
}

std::optional<modules::Objects::Found> ObjectDisk::find(std::string_view name, const Fits& fits) const {
  const auto found = store_->find(name, fits);
  return found ? std::optional(Found{.id = found->id, .is_sure = found->is_sure}) : std::nullopt;
}

}  // namespace longhaul
