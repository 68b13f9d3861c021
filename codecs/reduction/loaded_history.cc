// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/loaded_history.h"

namespace longhaul::reduction {

void LoadedHistory::add(const Load& load, std::uint64_t stream) {
  const Run run{load.segment, load.offset};
  loaded_[run] = {load.length, load.ring_offset};
  announced_[load.ring_offset] = {.run = run, .length = load.length, .stream = stream};
}

bool LoadedHistory::holds(SegmentId segment, std::uint32_t offset, const SharedHistory& shared) const {
  const auto behind = loaded_.upper_bound({segment, offset});
  if (behind == loaded_.begin()) return false;
  const auto& [run, one] = *std::prev(behind);
  return run.first == segment && offset - run.second < one.length && shared.in_reach(one.ring_offset) &&
         !shared.given_up(one.ring_offset + (offset - run.second));
}

std::optional<std::uint64_t> LoadedHistory::give_up(const Load& load) {
  auto known = announced_.find(load.ring_offset);
  if (known == announced_.end() || known->second.given_up) return std::nullopt;
  Announced& announced = known->second;
  if (announced.run.first != load.segment || announced.length != load.length) return std::nullopt;
  announced.given_up = true;
  return announced.stream;
}

void LoadedHistory::forget_out_of_reach(const SharedHistory& shared) {
  while (!announced_.empty() && !shared.in_reach(announced_.begin()->first)) {
    const auto [ring_offset, load] = *announced_.begin();
    announced_.erase(announced_.begin());
    const auto known = loaded_.find(load.run);
    if (known != loaded_.end() && known->second.ring_offset == ring_offset) loaded_.erase(known);
  }
}

void LoadedHistory::clear() {
  loaded_.clear();
  announced_.clear();
}

}  // namespace longhaul::reduction
