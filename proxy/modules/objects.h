// SPDX-License-Identifier: Apache-2.0
// Objects that a module keeps on the daemon's disk: named bytes, encrypted, bounded, there again after a restart. Without I/O;
// proxy/object_disk.h has the store.
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
    // False: it may have been erased since it was stored. Its content must be confirmed before it is used.
    bool is_sure = false;
  };
  // The newest of that name that fits. `tag` is the module's own description.
  using Fits = std::function<bool(Bytes tag, bool is_sure)>;
  virtual std::optional<Found> find(std::string_view name, const Fits& fits) const = 0;
  // Calls `done` on the loop, later: with the bytes, or with nothing if they cannot be read or were erased meanwhile. False: not
  // now, and `done` is not called.
  using Done = std::function<void(std::optional<Slice>)>;
  virtual bool read(Id id, Done done) = 0;
  // Replaces the one of that name and tag, whether there is room for the new one or not. Nothing waits for the disk.
  virtual void put(std::string_view name, Buffer tag, std::vector<Slice> parts) = 0;
  virtual void erase(std::string_view name) = 0;
  virtual void erase(std::string_view name, Bytes tag) = 0;
  // Everything: how many bytes.
  virtual std::uint64_t clear() = 0;
  // Of what waits to be written, of what is being read, and of the index.
  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace longhaul::modules
