// SPDX-License-Identifier: Apache-2.0
#include "proxy/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "proxy/config/units.h"

namespace longhaul {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMostAhead = 256 * kMiB;

// The dictionary on disk (cache/FORMAT.md, section 8): the index takes a MiB for 256 MiB stored.
constexpr std::uint64_t kStoredForMiB = 256 * kMiB;
constexpr std::uint64_t kCatalogue = 16 * kMiB;
// The queue has room for a segment, and for the loads of a block.
constexpr std::uint64_t kLeastQueue = 16 * kMiB, kMostQueue = 64 * kMiB;

// A history of h bytes needs, in both directions, 2 h; the index for repeats h / 16 (codecs/dedup/README.md);
// read-ahead from the disk h / 8 (DiskReadAhead::memory_bytes), and incomplete segments as much again for any
// h. In sixteenths:
constexpr std::uint64_t kInMemory = 33, kFromDisk = 2;
constexpr std::uint64_t kSegmentsInTheMaking = 8 * kMiB;
constexpr std::uint64_t kHistoryStep = 64 << 10;

std::uint64_t sixteenths(bool has_disk) { return kInMemory + (has_disk ? kFromDisk : 0); }

std::uint64_t cost_of(std::uint64_t history, bool has_disk) {
  return history == 0 ? 0 : history / 16 * sixteenths(has_disk) + (has_disk ? kSegmentsInTheMaking : 0);
}

// The largest history at that cost.
std::uint64_t history_for(std::uint64_t cost, bool has_disk) {
  const std::uint64_t fixed = has_disk ? kSegmentsInTheMaking : 0;
  if (cost < fixed) return 0;
  const std::uint64_t history = (cost - fixed) / sixteenths(has_disk) * 16 / kHistoryStep * kHistoryStep;
  return history < config::Dictionary::kMinMemory ? 0 : history;
}

std::uint64_t wanted(const config::Config& config, const config::Peer& peer) {
  const std::uint64_t bytes = peer.dictionary_memory_bytes.value_or(config.dictionary.memory_bytes);
  return bytes / kHistoryStep * kHistoryStep;
}

// Each peer gets the requested amount, or the same share as all others that get less than requested. If that
// is too little for a dictionary, only the first peers of the configuration get one.
std::vector<std::uint64_t> share_out(const std::vector<std::uint64_t>& wants, std::uint64_t room,
                                     bool has_disk) {
  std::vector<std::size_t> order(wants.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return wants[i]; });
  std::vector<std::uint64_t> shares(wants.size());
  std::size_t left = wants.size() - static_cast<std::size_t>(std::ranges::count(wants, std::uint64_t{0}));
  for (std::size_t i : order) {
    if (wants[i] == 0) continue;
    shares[i] = std::min(wants[i], history_for(room / left--, has_disk));
    room -= cost_of(shares[i], has_disk);
  }
  return shares;
}

std::vector<std::uint64_t> wants_of(const config::Config& config) {
  std::vector<std::uint64_t> wants;
  for (const config::Peer& peer : config.peers) wants.push_back(wanted(config, peer));
  return wants;
}

// Uses at most half of the memory of dictionaries; no store if that is too little for the smallest.
void plan_store(const config::Config& config, std::uint64_t most, MemoryPlan& plan) {
  if (config.dictionary.disk_bytes == 0 || config.peers.empty()) return;
  const std::uint64_t queue = std::clamp<std::uint64_t>(most / 8, kLeastQueue, kMostQueue);
  const std::uint64_t fixed = kCatalogue + 2 * queue;
  if (most < fixed) return;
  const std::uint64_t indexed = std::min(config.dictionary.disk_bytes, (most - fixed) / kMiB * kStoredForMiB);
  if (indexed < config::Dictionary::kMinDisk) return;
  plan.disk_bytes = indexed;
  plan.disk_queue_bytes = plan.disk_loading_bytes = queue;
  plan.store_bytes = fixed + (indexed + kStoredForMiB - 1) / kStoredForMiB * kMiB;
}

}  // namespace

MemoryPlan memory_plan(const config::Config& config) {
  MemoryPlan plan{.cap_bytes = config.limits.memory_bytes};
  const std::uint64_t dictionaries = plan.cap_bytes / 2;
  plan.reserve_bytes = plan.cap_bytes / 8;
  plan.ahead_bytes = std::min(kMostAhead, plan.cap_bytes / 8);
  plan_store(config, dictionaries / 2, plan);
  const bool has_disk = plan.disk_bytes > 0;
  for (std::uint64_t history : share_out(wants_of(config), dictionaries - plan.store_bytes, has_disk))
    plan.history_bytes += cost_of(history, has_disk);
  // Flows get the memory that dictionaries do not use.
  const std::uint64_t flows =
      plan.cap_bytes - plan.reserve_bytes - plan.ahead_bytes - plan.store_bytes - plan.history_bytes;
  plan.credit_bytes = plan.retained_bytes = flows / 8 * 3;
  plan.module_bytes = flows / 4;
  return plan;
}

std::uint64_t HistoryRoom::assign(const config::Config& config, const std::string& peer) {
  assigned_.erase(peer);
  std::uint64_t used = 0;
  for (const auto& [other, history] : assigned_) used += cost_of(history, has_disk_);
  const auto shares = share_out(wants_of(config), room_, has_disk_);
  for (std::size_t i = 0; i < config.peers.size(); ++i)
    if (config.peers[i].name == peer)
      return assigned_[peer] = std::min(shares[i], history_for(room_ - std::min(used, room_), has_disk_));
  return 0;
}

std::vector<std::uint64_t> history_shares(const config::Config& config, const MemoryPlan& plan) {
  return share_out(wants_of(config), plan.history_bytes, plan.disk_bytes > 0);
}

std::string whole_mib(std::uint64_t bytes) { return config::size_to_text(bytes / kMiB * kMiB); }

std::vector<std::string> memory_warnings(const config::Config& config) {
  const MemoryPlan plan = memory_plan(config);
  const std::string cap = "[limits] memory (" + config::size_to_text(plan.cap_bytes) + ")";
  const std::uint64_t disk = config.dictionary.disk_bytes;
  std::vector<std::string> list;
  if (!config.peers.empty() && disk > 0 && plan.disk_bytes == 0)
    list.push_back(
        cap + " has no room for the index of the dictionary on disk, so it is not used. Raise it to \"" +
        whole_mib(4 * (kCatalogue + 2 * kLeastQueue + kMiB)) + "\" or more, or set [dictionary] disk = 0.");
  else if (!config.peers.empty() && plan.disk_bytes < disk)
    list.push_back(cap + " has room to index only " + config::size_to_text(plan.disk_bytes) +
                   " of the dictionary on disk, instead of " + config::size_to_text(disk) +
                   ". Raise [limits] memory (the index takes 4 MiB for each GiB), or lower [dictionary] "
                   "disk.");
  const auto shares = history_shares(config, plan);
  std::string smaller;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::uint64_t wish = wanted(config, config.peers[i]);
    if (shares[i] == wish) continue;
    smaller += (smaller.empty() ? "\"" : ", \"") + config.peers[i].name + "\" " + whole_mib(shares[i]) +
               " instead of " + whole_mib(wish);
  }
  if (!smaller.empty())
    list.push_back(cap + " makes the dictionaries in memory smaller: " + smaller +
                   " in each direction. Raise it, or lower [dictionary] memory.");
  return list;
}

}  // namespace longhaul
