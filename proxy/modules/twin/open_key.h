// SPDX-License-Identifier: Apache-2.0
// The ids that the two halves of a connection use for an open file, a request and the age of data. The module
// defines their meaning in its protocol.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "codecs/keyed_hash.h"
#include "proxy/link/types.h"

namespace longhaul::twin {

// An open file (or object) of this connection: the client's id for it, of up to 16 bytes, in a session and a
// tree if the protocol has them, else zero.
struct OpenKey {
  std::uint64_t session = 0;
  std::uint32_t tree = 0;
  std::array<std::byte, 16> id{};  // zero after its size
  bool operator==(const OpenKey&) const = default;
  auto operator<=>(const OpenKey&) const = default;
};

struct OpenKeyHash {
  std::size_t operator()(const OpenKey& key) const {
    std::uint64_t halves[2];
    std::memcpy(halves, key.id.data(), sizeof(halves));
    const KeyedHash hash;
    return hash(hash(halves[0], halves[1]), hash(key.session, key.tree));
  }
};

// The number of a request on its connection.
using MessageNumber = link::Id<struct MessageNumberKind, std::uint64_t>;

// How often each half had dropped cached data of the open when data was requested from the server, or a READ
// from this half. Data of one stamp can only serve READs of the same stamp.
struct Stamp {
  std::uint32_t near = 0, far = 0;
  bool operator==(const Stamp&) const = default;
};

}  // namespace longhaul::twin
