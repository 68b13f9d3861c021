// SPDX-License-Identifier: Apache-2.0
// Slots by size of their buffers, with a list of free ones for each size.
#include "tests/simulator/datagram.h"

#include <algorithm>
#include <stdexcept>

namespace longhaul::simulator {

DatagramPool::Id DatagramPool::put(const Datagram& datagram, Bytes payload) {
  const auto fits = std::lower_bound(kSizes.begin(), kSizes.end(), payload.size());
  if (fits == kSizes.end()) throw std::length_error("no datagram is that large");
  const auto size = static_cast<std::uint8_t>(fits - kSizes.begin());
  Id id;
  if (free_[size].empty()) {
    id = static_cast<Id>(slots_.size());
    slots_.push_back({{}, *fits ? std::make_unique<std::byte[]>(*fits) : nullptr, size});
  } else {
    id = free_[size].back();
    free_[size].pop_back();
  }
  Slot& slot = slots_[id];
  slot.datagram = datagram;
  slot.datagram.payload = {slot.memory.get(), payload.size()};
  std::copy(payload.begin(), payload.end(), slot.memory.get());
  ++in_use_;
  return id;
}

void DatagramPool::give_back(Id id) {
  free_[slots_[id].size].push_back(id);
  --in_use_;
}

}  // namespace longhaul::simulator
