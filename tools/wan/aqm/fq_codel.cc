// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/aqm/fq_codel.h"

#include <algorithm>

namespace longhaul::wan {

// Section 4.1.
void FqCodelQueue::enqueue(const QueuedPacket& packet, TimePoint, Packets& dropped) {
  // Neighbouring flows must not share a queue (Fibonacci hashing).
  const auto hash = static_cast<std::uint32_t>((packet.flow * 0x9e3779b97f4a7c15u) >> 54) % kQueues;
  Flow& flow = flows_.try_emplace(hash, times_).first->second;
  flow.queue.push(packet);
  bytes_ += packet.bytes;
  if (flow.on == On::no_list) {
    flow.deficit = kQuantum;
    flow.on = On::new_list;
    new_flows_.push_back(&flow);
  }
  if (bytes_ > limit_bytes_) drop_from_fattest(dropped);
}

void FqCodelQueue::drop_from_fattest(Packets& dropped) {
  const auto fattest = std::max_element(flows_.begin(), flows_.end(), [](const auto& a, const auto& b) {
    return a.second.queue.bytes() < b.second.queue.bytes();
  });
  Fifo& queue = fattest->second.queue;
  const std::uint64_t half = queue.bytes() / 2;
  std::uint64_t gone = 0;
  for (std::size_t i = 0; i < kMostDroppedAtOnce && gone <= half; ++i) {
    const auto first = queue.pop();
    if (!first) break;
    gone += first->bytes;
    dropped.push_back(*first);
  }
  bytes_ -= gone;
}

// Section 4.2.
std::optional<QueuedPacket> FqCodelQueue::dequeue(TimePoint now, Packets& dropped) {
  for (;;) {
    const bool is_new = !new_flows_.empty();
    auto& list = is_new ? new_flows_ : old_flows_;
    if (list.empty()) return std::nullopt;
    Flow& flow = *list.front();
    const auto to_end_of_old = [&] {
      old_flows_.splice(old_flows_.end(), list, list.begin());
      flow.on = On::old_list;
    };
    if (flow.deficit <= 0) {
      flow.deficit += kQuantum;
      to_end_of_old();
      continue;
    }
    const std::uint64_t before = flow.queue.bytes();
    auto packet = flow.codel.dequeue(flow.queue, now, dropped,
                                     [this](QueuedPacket& marked) { return mark(marked, ecn_); });
    bytes_ -= before - flow.queue.bytes();
    if (packet) {
      flow.deficit -= packet->bytes;
      return packet;
    }
    if (is_new) {  // or a flow that sends now and then would always be new
      to_end_of_old();
    } else {
      list.pop_front();
      flow.on = On::no_list;
    }
  }
}

Discipline::Packets FqCodelQueue::take_all() {
  Packets all;
  for (auto& [hash, flow] : flows_)
    for (const QueuedPacket& packet : flow.queue.take_all()) all.push_back(packet);
  std::ranges::sort(all, {}, &QueuedPacket::number);
  new_flows_.clear();
  old_flows_.clear();
  flows_.clear();
  bytes_ = 0;
  return all;
}

}  // namespace longhaul::wan
