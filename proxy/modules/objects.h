// SPDX-License-Identifier: Apache-2.0
// Objects that a module stores on the daemon's disk: named bytes, encrypted, limited in size, available after
// a restart. Without I/O; proxy/object_disk.h has the store.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/slice.h"

namespace longhaul::modules {

class Objects {
 public:
  using Id = std::uint64_t;
  virtual ~Objects() = default;

  struct Found {
    Id id = 0;
    // False if it may have been erased since it was stored: then its content must be confirmed before it is
    // used.
    bool is_sure = false;
  };
  // Finds the newest object of that name that fits. `tag` is the module's own description.
  using Fits = std::function<bool(Bytes tag, bool is_sure)>;
  virtual std::optional<Found> find(std::string_view name, const Fits& fits) const = 0;
  // Calls `done` later, on the event loop, with the bytes, or with nullopt if they cannot be read or were
  // erased meanwhile. Returns false if it cannot read now; then `done` is not called.
  using Done = std::function<void(std::optional<Slice>)>;
  virtual bool read(Id id, Done done) = 0;
  // Replaces the object of that name and tag; the old one is dropped even if there is no room for the new
  // one. Does not wait for the disk.
  virtual void put(std::string_view name, Buffer tag, std::vector<Slice> parts) = 0;
  virtual void erase(std::string_view name) = 0;
  virtual void erase(std::string_view name, Bytes tag) = 0;
  // Erases everything; returns the number of bytes.
  virtual std::uint64_t clear() = 0;
  // Memory of data to be written, data being read, and the index.
  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace longhaul::modules
