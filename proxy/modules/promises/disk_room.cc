// SPDX-License-Identifier: Apache-2.0
// See disk_room.h: arithmetic about free space. The halves query the server and send the results.
#include "proxy/modules/promises/disk_room.h"

#include <algorithm>

namespace longhaul::promises {
namespace {

// Reserve that is never promised: for writes of others, and for rounding to allocation units.
std::uint64_t reserve(std::uint64_t available_bytes) {
  return std::max<std::uint64_t>(std::min<std::uint64_t>(available_bytes / 8, 64 << 20), 1 << 20);
}

}  // namespace

void DiskRoom::told(DiskTree tree, std::uint64_t available_bytes, std::uint64_t counted_bytes) {
  if (!trees_.contains(tree) && trees_.size() >= kMostTrees) return;
  State& state = trees_[tree];
  state.available_bytes = available_bytes;
  // A peer that counted more than was promised would create room from nothing.
  state.counted_bytes = std::min(counted_bytes, state.promised_bytes);
}

bool DiskRoom::has_room(DiskTree tree, std::uint64_t length) const {
  const auto found = trees_.find(tree);
  if (found == trees_.end() || !found->second.available_bytes) return false;
  const State& state = found->second;
  const std::uint64_t available = *state.available_bytes;
  const std::uint64_t taken = state.promised_bytes - state.counted_bytes;
  const std::uint64_t kept_back = reserve(available);
  return available >= kept_back && taken <= available - kept_back && length <= available - kept_back - taken;
}

bool DiskRoom::knows(DiskTree tree) const {
  const auto found = trees_.find(tree);
  return found != trees_.end() && found->second.available_bytes;
}

void DiskRoom::promised(DiskTree tree, std::uint64_t length) { trees_[tree].promised_bytes += length; }

bool DiskQuestions::ask_for(DiskTree tree, link::TimePoint now) {
  State& state = trees_[tree];
  if (state.asking || state.refused) return false;
  const std::uint64_t used = state.written_bytes - state.asked_at_bytes;
  const bool fresh = state.known && now - state.asked_at < kOldAfter;
  if (fresh && used <= std::min(state.available_bytes / kUsedShare, kMostUsedBytes)) return false;
  state.asking = true;
  state.asked_at = now;
  state.asked_at_bytes = state.written_bytes;
  return true;
}

void DiskQuestions::written(DiskTree tree, std::uint64_t length) { trees_[tree].written_bytes += length; }

std::optional<DiskQuestions::Told> DiskQuestions::answered(DiskTree tree,
                                                           std::optional<std::uint64_t> available_bytes) {
  const auto found = trees_.find(tree);
  if (found == trees_.end()) return std::nullopt;
  State& state = found->second;
  state.asking = false;
  if (!available_bytes) {
    if (state.known) return std::nullopt;
    state.refused = true;  // a server that never answered is not asked again; one that once did is
    return Told{};
  }
  state.known = true;
  state.available_bytes = *available_bytes;
  return Told{.available_bytes = *available_bytes, .counted_bytes = state.asked_at_bytes};
}

void DiskQuestions::not_asked(DiskTree tree) {
  const auto found = trees_.find(tree);
  if (found == trees_.end()) return;
  found->second.asking = false;
  found->second.asked_at = {};
}

}  // namespace longhaul::promises
