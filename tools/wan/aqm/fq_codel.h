// SPDX-License-Identifier: Apache-2.0
// FQ-CoDel (RFC 8290): each flow has a queue with CoDel; queues take turns of a packet's bytes, and a flow
// that begins goes first.
#pragma once
#include <list>
#include <map>

#include "tools/wan/aqm/codel.h"

namespace longhaul::wan {

class FqCodelQueue final : public Discipline {
 public:
  explicit FqCodelQueue(const AqmConfig& config) : ecn_(config.ecn), times_(codel_times(config)) {}
  void enqueue(const QueuedPacket& packet, TimePoint now, Packets& dropped) override;
  std::optional<QueuedPacket> dequeue(TimePoint now, Packets& dropped) override;
  std::uint64_t bytes() const override { return bytes_; }
  Packets take_all() override;
  void set_line(std::uint64_t, std::uint64_t limit_bytes) override { limit_bytes_ = limit_bytes; }

  static constexpr std::uint32_t kQueues = 1024;         // section 5.2.3
  static constexpr std::int64_t kQuantum = 1514;         // section 5.2.4
  static constexpr std::size_t kMostDroppedAtOnce = 64;  // of the fattest queue when all is full

 private:
  enum class On : std::uint8_t { no_list, new_list, old_list };
  struct Flow {
    explicit Flow(const CodelTimes& times) : codel(times) {}
    Fifo queue;
    Codel codel;
    std::int64_t deficit = 0;
    On on = On::no_list;
  };
  void drop_from_fattest(Packets& dropped);

  bool ecn_;
  CodelTimes times_;
  std::uint64_t limit_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::map<std::uint32_t, Flow> flows_;  // by hash; never more than kQueues
  std::list<Flow*> new_flows_, old_flows_;
};

}  // namespace longhaul::wan
