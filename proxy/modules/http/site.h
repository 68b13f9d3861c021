// SPDX-License-Identifier: Apache-2.0
// What the HTTP flows of a daemon share: the store, and how much is on its way into it.
#pragma once
#include <cstdint>
#include <functional>

#include "proxy/modules/http/object_store.h"

namespace longhaul::http {

struct Site {
  explicit Site(std::uint64_t most_bytes) : store(most_bytes) {}
  ObjectStore store;
  std::uint64_t pending_bytes = 0;  // content of responses that are still coming, of all flows
  std::function<Seconds()> wall;    // seconds since 1970
};

}  // namespace longhaul::http
