// SPDX-License-Identifier: Apache-2.0
// What the HTTP flows of a daemon share: the store, the size of responses that are still arriving, and
// prefetched objects.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "proxy/modules/http/on_disk.h"
#include "proxy/modules/http/prefetch/known.h"
#include "proxy/modules/http/prefetch/pushed.h"
#include "proxy/modules/http/prefetch/relations.h"

namespace longhaul::http {

struct Site {
  // Limit of both stores together; pushed objects evict stored ones.
  explicit Site(std::uint64_t most_bytes) : store(most_bytes), pushed(most_bytes / 4) {}
  ObjectStore store;
  std::unique_ptr<OnDisk> disk;     // behind the store; null if there is none
  PushedStore pushed;               // near halves
  Known known;                      // far halves
  Relations relations;              // far halves
  std::uint64_t pending_bytes = 0;  // content of responses that are still arriving, of all flows
  std::function<Seconds()> wall;    // seconds since 1970
};

}  // namespace longhaul::http
