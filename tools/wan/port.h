// SPDX-License-Identifier: Apache-2.0
// One end of the line: where Ethernet frames come in with their arrival time, and where they are sent. Packet
// sockets and TAP devices implement it; what happens between two ports is direction.h's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tools/wan/link.h"

namespace longhaul::wan {

struct Arrival {
  TimePoint at;
  std::span<const std::byte> frame;  // until the next receive(); empty if the frame was too large to take
};

struct PortCounters {
  std::uint64_t oversized = 0;           // longer than the MTU: a sender with segmentation offload on
  std::uint64_t ring_dropped = 0;        // came faster than this process read
  std::uint64_t checksums_finished = 0;  // a sender with checksum offload on
  std::uint64_t send_failed = 0;         // refused by the kernel
};

class Port {
 public:
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  virtual ~Port() = default;

  virtual int descriptor() const = 0;  // readable while receive() has frames
  virtual std::optional<Arrival> receive() = 0;
  virtual void send(std::span<const std::span<const std::byte>> frames) = 0;
  // Also clears the descriptor's error, so that a link that went down may return. False when the interface is
  // gone.
  virtual bool still_there() = 0;
  virtual PortCounters counters() = 0;
  virtual void reset_counters() = 0;
  virtual const std::string& name() const = 0;
};

// "eth0" is an existing interface of this namespace; "tap:NAME" a TAP device, made if it does not exist.
// Throws std::runtime_error with a sentence for the user.
std::unique_ptr<Port> open_port(const std::string& name);
std::unique_ptr<Port> open_packet_port(const std::string& interface);
std::unique_ptr<Port> open_tap_port(const std::string& device);

}  // namespace longhaul::wan
