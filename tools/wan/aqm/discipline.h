// SPDX-License-Identifier: Apache-2.0
// Active queue management at the line: which packets are dropped or marked before the queue is full, and
// which goes next. Leaves the rate of the line, and drop-tail, to ../link.h.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "tools/wan/aqm/packet.h"

namespace longhaul::wan {

struct AqmConfig {
  enum class Kind : std::uint8_t { codel, fq_codel, pie, red } kind = Kind::codel;
  Duration target{0};    // CoDel's TARGET, PIE's QDELAY_REF; 0: as in its RFC
  Duration interval{0};  // CoDel's INTERVAL; 0: as in its RFC
  bool ecn = false;      // marks packets that are capable of it, where it would drop them
  bool operator==(const AqmConfig&) const = default;
};

std::string_view name_of(AqmConfig::Kind kind);

class Discipline {
 public:
  using Packets = std::vector<QueuedPacket>;

  virtual ~Discipline() = default;
  // Takes the packet, or drops it or others: those are appended to `dropped`.
  virtual void enqueue(const QueuedPacket& packet, TimePoint now, Packets& dropped) = 0;
  // The next one that goes on the line; none: nothing waits any more.
  virtual std::optional<QueuedPacket> dequeue(TimePoint now, Packets& dropped) = 0;
  virtual std::uint64_t bytes() const = 0;
  // In whatever order; nothing waits afterwards.
  virtual Packets take_all() = 0;
  // The line's, and how much may wait at most.
  virtual void set_line(std::uint64_t rate_bits, std::uint64_t limit_bytes) = 0;

  std::uint64_t marked() const { return marked_; }

 protected:
  // True: it need not be dropped.
  bool mark(QueuedPacket& packet, bool ecn) {
    if (!ecn || packet.ecn == Ecn::not_capable) return false;
    packet.ecn = Ecn::experienced;
    ++marked_;
    return true;
  }

 private:
  std::uint64_t marked_ = 0;
};

// `seed` of the dice of those that drop at random.
std::unique_ptr<Discipline> make_discipline(const AqmConfig& config, std::uint64_t seed);

}  // namespace longhaul::wan
