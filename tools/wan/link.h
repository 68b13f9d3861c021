// SPDX-License-Identifier: Apache-2.0
// One direction of an emulated line in virtual time: which packets are lost, and when the others come out.
// Leaves queues with management to managed_queue.h, the delay to propagation.h, clocks, sockets and the
// packets' bytes to forwarder.h.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "tools/wan/chance.h"
#include "tools/wan/managed_queue.h"
#include "tools/wan/policer.h"
#include "tools/wan/propagation.h"

namespace longhaul::wan {

struct LinkConfig {
  std::uint64_t rate_bits = 0;            // IP bits per second; 0: no limit, and no queue
  std::uint64_t queue_bytes = 64 * 1024;  // IP bytes that wait; the packet on the wire is not among them
  Duration delay{0};                      // from the last bit sent to the packet's delivery
  Duration jitter{0};                     // the delay is uniform within delay ± jitter; order is kept
  double loss = 0;                        // each packet by itself
  std::optional<BurstLoss> burst_loss{};  // beside `loss`
  double reorder = 0;                     // share of packets held back by reorder_by while others pass
  Duration reorder_by{0};
  double duplicate = 0;              // share of packets delivered twice; the copy takes no line time
  double corrupt = 0;                // share of packets delivered with one bit of their payload flipped
  std::optional<Policer> policer{};  // before the queue
  std::optional<AqmConfig> aqm{};    // within `queue_bytes`; none: drop-tail
  bool cut = false;                  // what comes is gone; what is on its way arrives
};

enum class Fate {
  carried,  // comes out of poll() later
  lost,     // takes its place in the queue and its time on the line, never comes out
  dropped,  // the queue was full, the policer or the queue's management dropped it, or the line is cut
};

// What the line must know of a packet beside its size.
struct PacketTraits {
  std::uint64_t flow = 0;  // packets of one flow have the same
  Ecn ecn = Ecn::not_capable;
};

struct Departure {
  TimePoint at;
  PacketId id = 0;
  std::uint32_t bytes = 0;
  unsigned copies = 1;  // 0: its queue dropped it after it had been taken
  std::optional<double>
      flipped_at{};     // where in the payload a bit is flipped, as a share of its bits: [0, 1)
  bool marked = false;  // it says now that it experienced congestion
};

struct LinkCounters {
  std::uint64_t packets_in = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_on_line = 0;  // what was not dropped: took line time, delivered or lost
  std::uint64_t packets_out = 0;    // copies included
  std::uint64_t bytes_out = 0;
  std::uint64_t lost = 0;
  std::uint64_t dropped = 0;        // by the queue, full or managed
  std::uint64_t dropped_early = 0;  // among these: before it was full
  std::uint64_t marked = 0;
  std::uint64_t policed = 0;
  std::uint64_t cut = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;  // came out after a packet that went in later (RFC 4737, section 3.3)
  std::uint64_t queue_peak_bytes = 0;
  std::optional<TimePoint> lost_on_demand;  // when the last packet entered that was dropped on request
};

// A packet waits in a drop-tail queue, is serialised at the rate, then travels for the delay. Everything
// follows from the arrival stamps: how late or how often poll() is called changes no decision and no
// departure time.
class Link {
 public:
  Link(const LinkConfig& config, std::uint64_t seed);

  // Stamps must not go backwards; one that does counts as the latest stamp seen.
  Fate arrive(TimePoint at, std::uint32_t bytes, PacketId id, const PacketTraits& traits = {});

  // From `at` on. The bits not yet sent go at the new rate, the packet on the wire included; a packet takes
  // the delay in force when its last bit is sent; packets already travelling keep theirs. What waits is never
  // dropped, even if the new queue is smaller. A shorter delay does not reorder: later packets wait for
  // earlier ones.
  void change(TimePoint at, const LinkConfig& config);
  void reseed(std::uint64_t seed);
  // So many of the packets that enter next are lost, whatever the dice say; they are thrown all the same.
  void lose_next(std::uint32_t packets) { to_lose_ = packets; }

  // The next packet that is out by `now`, in the order of departure; packets that the queue's management
  // dropped come first.
  std::optional<Departure> poll(TimePoint now);
  // Not after the next departure; may be a little before it. Nothing when the line is empty.
  std::optional<TimePoint> next_wakeup() const;

  std::uint64_t queued_bytes(TimePoint now);
  std::size_t packets_inside() const { return sending_.size() + managed_.size() + travelling_.size(); }
  const LinkCounters& counters() const { return counters_; }
  void reset_counters(TimePoint now);

 private:
  struct Sending {           // waits or is on the wire
    std::uint64_t end_bits;  // sent since busy_since_ when its last bit is out
    std::uint64_t number;    // order of arrival
    PacketId id;
    std::uint32_t bytes;
    double jitter_share;  // -1 to 1
    bool lost;
    bool held_back;
    bool twice;
    std::optional<double> flipped_at;
    bool marked;
  };
  struct Waiting {             // the same packets as Sending, seen by the queue's bound
    std::uint64_t start_bits;  // sent since busy_since_ when its first bit goes out
    std::uint32_t bytes;
  };

  TimePoint sent_at(std::uint64_t bits) const;  // when that many bits of the busy period are out
  void forget_started(TimePoint at);            // keeps waiting_ to what has not begun by `at`
  void launch_sent(TimePoint at);               // moves what is wholly sent by `at` on to the delay
  Departure deliver(const Propagation::Out& out);

  // Puts what the managed queue gives on the line, as long as that is free by `at`.
  void serve(TimePoint at);
  void count(const ManagedQueue::Drops& drops);
  void put_on_line(const QueuedPacket& packet);
  void manage_queue();

  LinkConfig config_;
  LinkChances chances_;
  LinkCounters counters_;
  TimePoint latest_{};      // arrival or change
  TimePoint busy_since_{};  // bits of this busy period are counted from here, so no rounding adds up
  std::uint64_t busy_bits_ = 0;
  std::uint64_t waiting_bytes_ = 0;  // sum over waiting_
  std::uint64_t next_number_ = 0;
  std::uint32_t to_lose_ = 0;
  std::deque<Sending> sending_;
  std::deque<Waiting> waiting_;
  ManagedQueue managed_;
  TokenBucket bucket_;
  Propagation travelling_;
};

}  // namespace longhaul::wan
