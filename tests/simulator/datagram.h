// SPDX-License-Identifier: Apache-2.0
// A datagram in the virtual network, and the memory in which it waits: allocated once, reused for the next
// datagram. direction.h handles time and loss.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "codecs/bytes.h"
#include "tests/simulator/timeline.h"

namespace longhaul::simulator {

struct Address {
  std::uint32_t host = 0;
  std::uint16_t port = 0;
  auto operator<=>(const Address&) const = default;
};

// A datagram as its receiver, or a tap, sees it. The payload is what the sender gave and may be shorter than
// what the line counts: a model endpoint sends its header alone.
struct Datagram {
  Address from, to;
  std::uint32_t ip_bytes = 0;  // what line, queue and policer count
  bool corrupted = false;      // bits of the payload were flipped; a model without a checksum drops it
  TimePoint sent{};            // when it came to the line
  TimePoint arrived{};         // when it came to the receiver's host, which may read it later
  bool marked = false;         // by the line's queue: congestion was experienced
  MutableBytes payload;        // until the call returns; may be decrypted in place
};

// Datagrams that are on their way. A slot keeps its buffer for the next one of that size: after the network
// has been full once nothing is allocated.
class DatagramPool {
 public:
  using Id = wan::PacketId;

  Id put(const Datagram& datagram, Bytes payload);
  Datagram& operator[](Id id) { return slots_[id].datagram; }
  void give_back(Id id);
  std::size_t in_use() const { return in_use_; }

 private:
  static constexpr std::array<std::uint32_t, 7> kSizes{0, 128, 512, 1536, 4096, 9216, 65536};
  struct Slot {
    Datagram datagram;
    std::unique_ptr<std::byte[]> memory;
    std::uint8_t size = 0;  // index into kSizes
  };
  std::vector<Slot> slots_;
  std::array<std::vector<Id>, kSizes.size()> free_{};
  std::size_t in_use_ = 0;
};

}  // namespace longhaul::simulator
