// SPDX-License-Identifier: Apache-2.0
// What the HTTP flows of a daemon share: the store, how much is on its way into it, and what is fetched ahead.
#pragma once
#include <cstdint>
#include <functional>

#include "proxy/modules/http/object_store.h"
#include "proxy/modules/http/prefetch/known.h"
#include "proxy/modules/http/prefetch/pushed.h"

namespace longhaul::http {

struct Site {
  explicit Site(std::uint64_t most_bytes) : store(most_bytes - most_bytes / 4), pushed(most_bytes / 4) {}
  ObjectStore store;
  PushedStore pushed;  // near halves
  Known known;         // far halves
  std::uint64_t pending_bytes = 0;  // content of responses that are still coming, of all flows
  std::function<Seconds()> wall;    // seconds since 1970
};

}  // namespace longhaul::http
