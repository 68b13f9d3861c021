// SPDX-License-Identifier: Apache-2.0
// The server's response to a query, stored to answer the same query again.
#pragma once
#include <algorithm>
#include <chrono>

#include "codecs/slice.h"
#include "proxy/modules/module.h"

namespace longhaul::smb::smb1 {

struct KnownAnswer {
  Slice parameters, data;
  modules::TimePoint came{};
};
inline KnownAnswer known_answer(Bytes parameters, Bytes data, modules::TimePoint came) {
  return {Slice::copy_of(parameters), Slice::copy_of(data), came};
}

// Relaxed: a snapshot is valid for as long as it would have been in transit.
inline bool is_recent(modules::TimePoint now, const KnownAnswer& known, modules::Duration round_trip) {
  constexpr modules::Duration kLeastLife = std::chrono::milliseconds(100);
  return now - known.came <= std::max(kLeastLife, 2 * round_trip);
}

}  // namespace longhaul::smb::smb1
