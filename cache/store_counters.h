// SPDX-License-Identifier: Apache-2.0
// The counters of the stores on disk: plain values, returned by value.
#pragma once
#include <cstdint>

namespace longhaul::cache {

// The result of destroying the key when the store was last cleared. pending: the disk has not responded yet;
// kept: it refused, and the log has the reason.
enum class ClearedKey : std::uint8_t { none, pending, destroyed, kept };

struct StoreCounters {
  bool ready = false;  // the directory was read
  std::uint64_t cap_bytes = 0;
  std::uint64_t disk_bytes = 0;    // of segments, including those in the queue, and of the catalogue
  std::uint64_t memory_bytes = 0;  // of the index
  std::uint64_t queued_bytes = 0;
  std::uint64_t segments = 0;
  std::uint64_t put = 0, put_bytes = 0;          // accepted
  std::uint64_t refused = 0, refused_bytes = 0;  // no room in the queue, or on the disk; not ready
  std::uint64_t failed = 0;                      // accepted, but not written because of an error
  std::uint64_t wrong_digest = 0;                // accepted, but the bytes do not match the name
  std::uint64_t made_room = 0;                   // evicted
  std::uint64_t damaged = 0;                     // dropped because they could not be read
  std::uint64_t lost = 0;                        // lost together with the directory
  std::uint64_t loads = 0, load_bytes = 0, loads_failed = 0;
  std::uint64_t lookups = 0, hits = 0;  // of fingerprints
};

// Of whole objects.
struct ObjectCounters {
  bool ready = false;  // the directory was read
  std::uint64_t cap_bytes = 0;
  std::uint64_t disk_bytes = 0;    // of files, including those in the queue
  std::uint64_t memory_bytes = 0;  // of the index, the queue, and what is being read
  std::uint64_t queued_bytes = 0;
  std::uint64_t objects = 0;
  std::uint64_t put = 0, put_bytes = 0;    // accepted
  std::uint64_t refused = 0;               // no room in the queue, too large, or not ready
  std::uint64_t failed = 0;                // accepted, but not written because of an error
  std::uint64_t evicted = 0;
  std::uint64_t damaged = 0;               // dropped because they could not be read
  std::uint64_t reads = 0, read_bytes = 0, reads_failed = 0;
  // By the daemon (read_patience.h).
  bool answers = true;              // false: nothing is read for the moment, because the disk was late
  std::uint64_t reads_late = 0;     // of `reads`
  std::uint64_t reads_skipped = 0;  // not made while it did not answer
};

}  // namespace longhaul::cache
